"""RRULE text: wrong rules are refused with a hint, others have one canonical text."""

import time

import pytest

from timers.recurrence import parse
from timers.recurrence.rrule_text import parse_rule
from tocsin.core.errors import InvalidInput

REFUSED = {
    "": "KEY=VALUE",
    "DAILY": "KEY=VALUE",
    "FREQ=": "KEY=VALUE",
    "FREQ=FORTNIGHTLY": "YEARLY",
    "INTERVAL=2": "start with FREQ=",
    "FREQ=DAILY;INTERVAL=0": "from 1",
    "FREQ=DAILY;INTERVAL=-1": "from 1",
    "FREQ=DAILY;INTERVAL=1.5": "from 1",
    "FREQ=DAILY;INTERVAL=99999999999": "from 1",
    "FREQ=DAILY;COUNT=0": "from 1",
    "FREQ=DAILY;COUNT=-1": "from 1",
    "FREQ=DAILY;COUNT=1000000000": "use UNTIL",
    "FREQ=DAILY;COUNT=3;UNTIL=20261231": "exclude each other",
    "FREQ=DAILY;UNTIL=2026-12-31": "not a time",
    "FREQ=DAILY;UNTIL=20261331": "not a time",
    "FREQ=DAILY;UNTIL=20261231T2500": "not a time",
    "FREQ=YEARLY;BYMONTH=13": "from 1 to 12",
    "FREQ=YEARLY;BYMONTH=0": "from 1 to 12",
    "FREQ=YEARLY;BYMONTH=-1": "from 1 to 12",
    "FREQ=MONTHLY;BYMONTHDAY=32": "from 1 to 31",
    "FREQ=MONTHLY;BYMONTHDAY=0": "from 1 to 31",
    "FREQ=YEARLY;BYWEEKNO=54": "from 1 to 53",
    "FREQ=YEARLY;BYYEARDAY=367": "from 1 to 366",
    "FREQ=DAILY;BYHOUR=24": "from 0 to 23",
    "FREQ=DAILY;BYHOUR=-1": "from 0 to 23",
    "FREQ=DAILY;BYMINUTE=60": "from 0 to 59",
    "FREQ=DAILY;BYSECOND=60": "from 0 to 59",
    "FREQ=DAILY;BYHOUR=1,,2": "from 0 to 23",
    "FREQ=WEEKLY;BYDAY=XX": "MO TU",
    "FREQ=WEEKLY;BYDAY=MONDAY": "MO TU",
    "FREQ=MONTHLY;BYDAY=0MO": "MO TU",
    "FREQ=MONTHLY;BYDAY=6MO": "at most 5",
    "FREQ=YEARLY;BYMONTH=3;BYDAY=6MO": "at most 5",
    "FREQ=YEARLY;BYDAY=54MO": "MO TU",
    "FREQ=WEEKLY;BYDAY=1MO": "MONTHLY or YEARLY",
    "FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO": "without BYWEEKNO",
    "FREQ=WEEKLY;BYDAY=MO;BYDAY=TU": "given twice",
    "FREQ=DAILY;FREQ=WEEKLY": "given twice",
    "FREQ=WEEKLY;WKST=XX": "one of MO",
    "FREQ=DAILY;BYEASTER=1": "unknown part",
    "FREQ=DAILY;FOO=1": "unknown part",
    "FREQ=DAILY;BYSETPOS=1": "add BYDAY",
    "FREQ=HOURLY;BYSETPOS=2;BYMINUTE=1,2": "FREQ=HOURLY is not supported",
    "FREQ=MINUTELY;BYSETPOS=2": "is not supported",
    "FREQ=SECONDLY;BYSETPOS=2": "SECONDLY",
    "FREQ=SECONDLY;BYHOUR=3": "SECONDLY",
    "FREQ=WEEKLY;BYMONTHDAY=3": "cannot be used",
    "FREQ=MONTHLY;BYWEEKNO=3": "cannot be used",
    "FREQ=DAILY;BYYEARDAY=3": "cannot be used",
    "FREQ=DAILY;DTSTART=20260101": "set 'dtstart'",
    "DTSTART:20260101T000000\nRRULE:FREQ=DAILY": "one line",
    "FREQ=DAILY;EXDATE=20260101": "set 'exdates'",
    "FREQ=DAILY;INTERVAL=٢": "ASCII",
    "FREQ=DAILY BYHOUR=3": "start with FREQ=",
}
SLOW_ELSEWHERE = (
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;UNTIL=20300101",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=5",
    "FREQ=YEARLY;BYWEEKNO=20;BYMONTH=1",
    "FREQ=YEARLY;BYDAY=53MO;BYYEARDAY=5",
    "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31;BYDAY=1MO",
    "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4",
    "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MINUTELY;BYHOUR=3;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MINUTELY;INTERVAL=120;BYHOUR=3",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=3",
    "FREQ=MINUTELY;INTERVAL=2;BYMONTHDAY=6;BYMINUTE=45",
    "FREQ=MINUTELY;INTERVAL=3;BYMONTH=2,6,9;BYMONTHDAY=17,26;BYHOUR=18,2;BYMINUTE=47,44",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=YEARLY;COUNT=10000",
    "FREQ=MINUTELY;BYHOUR=3;BYMONTH=2;BYMONTHDAY=29;COUNT=10000",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;COUNT=10000",
    "FREQ=DAILY;BYHOUR=" + ",".join(["1"] * 1_000_000),
    "FREQ=DAILY;" * 100_000,
    "A" * 1_000_000,
)


@pytest.mark.parametrize(("text", "hint"), REFUSED.items(), ids=list(map(ascii, REFUSED)))
def test_rules_that_are_wrong_are_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint):
        parse(rrule=text, dtstart="2026-01-01T00:00")


@pytest.mark.parametrize("number", range(len(SLOW_ELSEWHERE)))
def test_rules_that_would_search_forever_are_refused_at_once(number: int) -> None:
    started = time.process_time()
    with pytest.raises(InvalidInput) as refused:
        parse(rrule=SLOW_ELSEWHERE[number], dtstart="2026-01-01T00:00")
    assert time.process_time() - started < 1.0
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("RRULE:freq=daily;interval=1", "FREQ=DAILY"),
        ("BYDAY=FR,MO;FREQ=WEEKLY;WKST=SU;INTERVAL=2;", "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,FR"),
        ("FREQ=MONTHLY;BYDAY=-1FR,+1MO", "FREQ=MONTHLY;BYDAY=1MO,-1FR"),
        ("FREQ=YEARLY;BYSETPOS=-1;BYMONTH=3,1,3", None),
        ("FREQ=MONTHLY;BYSETPOS=-1;BYMONTHDAY=3,1,3", "FREQ=MONTHLY;BYMONTHDAY=1,3;BYSETPOS=-1"),
    ],
)
def test_a_rule_has_one_canonical_text(text: str, canonical: str | None) -> None:
    rule = parse_rule(text)
    if canonical is not None:
        assert str(rule) == canonical
    assert parse_rule(str(rule)) == rule
