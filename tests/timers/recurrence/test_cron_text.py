"""The cron dialect: an accepted expression has one meaning and one plain spelling."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from timers.recurrence import parse, parse_spec
from timers.recurrence.cron_text import is_interval_like, plain_cron
from tocsin.core.errors import InvalidInput

DAY = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED = {
    "5-5 * * * *": "equal range",
    "0 0 * * sun-sun": "equal range",
    "0 0 * * 7-0": "equal range",
    "59/15 * * * *": r"'\*/15'",
    "0 23/6 * * *": "last value",
    "0 0 31/5 * *": "last value",
    "0 0 1 dec/3 *": "last value",
    "0 0 * * 6/2": "last value",
    "R R * * *": "use H",
    "0 0 0 * * *": "every: 10s",
    "0 0 0 1 1 * 2026": "7 fields",
    "0 0 * *": "4 fields",
    "": "0 fields",
    "*/61 * * * *": "from 1 to 59",
    "*/60 * * * *": "from 1 to 59",
    "0 */24 * * *": "from 1 to 23",
    "*/99999999999 * * * *": "cannot be read",
    "*/0 * * * *": "from 1 to 59",
    "0 0 */31 * *": "from 1 to 30",
    "0 0 1 */12 *": "from 1 to 11",
    "0 0 * * */7": "from 1 to 6",
    "0-30/0 * * * *": "from 1 to 59",
    "٣ * * * *": "ASCII",
    "0 0 ２ * *": "ASCII",
    "0 0\n* * *": "ASCII",
    "0\x000 * * *": "ASCII",
    "60 * * * *": "outside 0-59",
    "0 24 * * *": "outside 0-23",
    "0 0 0 * *": "outside 1-31",
    "0 0 32 * *": "outside 1-31",
    "0 0 1 13 *": "outside 1-12",
    "0 0 * * 8": "outside 0-7",
    "0 0 1 foo *": "not a name",
    "mon 0 * * *": "use numbers",
    "-1 * * * *": "negative",
    "1,,2 * * * *": "extra comma",
    "*,5 * * * *": "already covers",
    "0 0 LW * *": "last day",
    "0 0 L-3 * *": "last day",
    "0 0 25-L * *": "last day",
    "0 0 * * 5L": "L5",
    "0 0 1,15W * *": "W stands alone",
    "0 0 31W * *": "1W to 28W",
    "0 0 * * mon#6": "1 to 5",
    "0 0 * * mon#0": "1 to 5",
    "0 0 * * mon#1,wed": "do not mix",
    "0 22-4/3 * * *": "wraps",
    "0 0 */2 * mon": "dialects disagree",
    "0 0 1 * */2": "dialects disagree",
    "0 0 1-31 * mon": "dialects disagree",
    "0 0 13 * 0-6": "dialects disagree",
    "0 0 13 * mon-sun": "dialects disagree",
    "0 0 15W * 1-5": r"both.*'0 0 15w \* \*' and '0 0 \* \* 1-5'",
    "0 0 1-7 * mon#1": "both",
    "0 0 15 * fri#2": "both",
    "0 0 L * fri": "both",
    "0 0 1 * L5": "both",
    "0 0 L * mon#1": "both",
    "0 0 * * 1/2": "'1-6/2'",
    "0 0 * * FRI/2": "'fri'",
    "0 0 * * MONL": "write Lmon",
    "0 0 30 2 *": "no month has such a day",
    "0 0 31 2,4,6,9,11 *": "never fires",
    "@reboot": "not a time",
    "@fortnightly": "@hourly",
    "@every 5": "unit",
    "@every 10ms": "shortest",
    "TZ=UTC 0 0 * * *": "set 'tz'",
    "CRON_TZ=UTC 0 0 * * *": "set 'tz'",
    "H(0-99) * * * *": "within 0-59",
    "H(5-5) * * * *": "within 0-59",
    "H/90 * * * *": "step",
    "H/60 * * * *": "from 1 to 59",
    "H,5 * * * *": "write H",
    "? * * * *": "cannot be read",
    "0 0 1,? * *": "cannot be read",
    "hello world a b c": "cannot be read",
    "1.5 * * * *": "cannot be read",
    "0 0 * * 1#1#1": "cannot be read",
}
HOSTILE = (
    "0," * 500_000 + "0 * * * *",
    "1-2," * 100_000 + "3 * * * *",
    "*" * 1_000_000,
    " " * 1_000_000,
    "0 0 " + "9" * 100_000 + " * *",
    "H(" * 5000,
    "@every " + "9" * 1_000_000 + "s",
    "\ud800 * * * *",
)


@pytest.mark.parametrize(("text", "hint"), REFUSED.items(), ids=list(map(ascii, REFUSED)))
def test_expressions_that_cron_dialects_read_differently_are_refused_with_a_hint(
    text: str, hint: str
) -> None:
    with pytest.raises(InvalidInput, match=hint):
        parse(cron=text)


def test_a_long_expression_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidInput, match="129 characters are too many"):
        parse(cron="0 0 1 1 *".ljust(129))


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_expressions_are_refused_at_once(number: int) -> None:
    started = time.process_time()
    with pytest.raises(InvalidInput) as refused:
        parse(cron=HOSTILE[number])
    assert time.process_time() - started < 1.0
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
        ("  0   8 *  * MON-FRI\n", "0 8 * * mon-fri"),
        ("0 8 *\t* *", None),
        ("0 8 * * MON-FRI", "0 8 * * mon-fri"),
        ("0 0 ? * 0-7", "0 0 ? * 0-7"),
        ("0 0 * * Lmon", "0 0 * * l1"),
        ("0 0 * * L7,Lfri", "0 0 * * l0,l5"),
    ],
)
def test_an_accepted_expression_has_one_plain_spelling(text: str, plain: str | None) -> None:
    if plain is None:
        with pytest.raises(InvalidInput, match="ASCII"):
            plain_cron(text, "")
    else:
        assert plain_cron(text, "") == plain


def test_h_is_resolved_once_and_depends_on_the_identity_alone() -> None:
    digest = plain_cron("H H H * H", "nightly")
    assert digest == plain_cron("H H H * H", "nightly")
    assert "h" not in digest
    spread = {plain_cron("H H * * *", f"schedule-{number}") for number in range(200)}
    assert len(spread) > 150


def test_h_is_stored_plain_and_keeps_its_meaning() -> None:
    recurrence = parse(cron="H H * * *", hash_id="nightly")
    assert recurrence.spec["cron"] == "7 17 * * *"


def test_h_stays_within_its_range_and_its_days_exist_in_every_month() -> None:
    for number in range(300):
        minute, hour, day, _, weekday = plain_cron("H(10-20) H(1-3) H * *", str(number)).split()
        assert 10 <= int(minute) <= 20
        assert 1 <= int(hour) <= 3
        assert 1 <= int(day) <= 28
        assert weekday == "*"
        assert 0 <= int(plain_cron("0 0 * * H", str(number)).split()[4]) <= 6


def test_h_with_a_step_covers_the_field_evenly() -> None:
    seen = set()
    for number in range(60):
        minute = plain_cron("H/15 3 * * *", str(number)).split()[0]
        times = parse(cron=f"{minute} 3 * * *").occurrences(DAY, DAY + timedelta(days=1), 10)
        minutes = [each.at.minute for each in times]
        assert [each - minutes[0] for each in minutes] == [0, 15, 30, 45]
        seen.add(minutes[0])
    assert len(seen) > 10


@pytest.mark.parametrize(
    "text", ["H/1 H/1 H/1 H/1 *", "H/2 H H * *", "H/59 3 * * *", "H/30 3 * * H/3", "H H * H H(1-5)"]
)
def test_every_resolved_h_can_be_read_again(text: str) -> None:
    for number in range(80):
        recurrence = parse(cron=text, hash_id=str(number))
        assert parse_spec(recurrence.spec) is recurrence


def test_an_expression_that_grows_too_long_to_be_read_again_is_refused() -> None:
    days, months = ",".join(map(str, range(1, 29))), "jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov"
    text = f"H/5 H {days} {months} *"
    assert len(text) <= 128
    with pytest.raises(InvalidInput, match="once H is resolved"):
        parse(cron=text, hash_id="nightly")


@pytest.mark.parametrize(
    ("plain", "interval_like"),
    [
        ("* * * * *", True),
        ("*/5 8 * * *", True),
        ("0 * * * *", True),
        ("0 */2 * * *", True),
        ("0 8 * * *", False),
        ("0-59 2 * * *", False),
        ("0 8 */2 * *", False),
    ],
)
def test_a_leading_star_in_minute_or_hour_makes_it_interval_like(plain: str, interval_like: bool) -> None:
    assert is_interval_like(plain) is interval_like


def test_the_advice_for_the_last_weekday_of_a_month_can_be_followed() -> None:
    found = parse(cron="0 0 * * Lmon").occurrences(DAY, DAY + timedelta(days=60), 2)
    assert [f"{each.at:%m-%d}" for each in found] == ["01-26", "02-23"]
