"""The decision whether an alarm is suppressed, and the windows of a maintenance."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.suppression import Inhibit, MatchedAlarm, Silence, suppressed_by
from rules.suppression.suppression import SilencesInForce
from rules.suppression.windows import next_window, next_windows
from schemas.documents import InhibitDocument
from timers.recurrence import parse

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def _alarm(number: int = 1, rule: str = "cpu-hot", owner: str = "plant-7", **labels: str) -> MatchedAlarm:
    return MatchedAlarm(UUID(int=number), rule, owner, 4, {"key": "cpu.temp", "labels": labels})


def _silence(matcher: str = "true", starts: int = 0, ends: int = 1, **fields: Any) -> Silence:
    return Silence(UUID(int=99), matcher, NOW + starts * HOUR, NOW + ends * HOUR, "fan swap", "ann", **fields)


def _inhibit(source: str, target: str, *equal: str) -> Inhibit:
    return Inhibit.of(
        InhibitDocument.model_validate({"name": "quiet", "source": source, "target": target, "equal": equal})
    )


def _by_inhibit(alarm: MatchedAlarm, inhibit: Inhibit, *open_alarms: MatchedAlarm) -> str | None:
    suppression = suppressed_by(alarm, [], [inhibit], open_alarms, NOW)
    return None if suppression is None else suppression.key


def test_a_silence_suppresses_what_it_matches_and_says_why() -> None:
    suppression = suppressed_by(_alarm(site="ams"), [_silence('labels.site == "ams"')], [], [], NOW)
    assert suppression is not None
    assert suppression.key == f"silence:{UUID(int=99)}"
    assert suppression.reason == "silence 00000000 (fan swap, ann, until 2026-03-02T13:00:00Z)"
    assert suppression.until == NOW + HOUR
    assert suppressed_by(_alarm(site="fra"), [_silence('labels.site == "ams"')], [], [], NOW) is None


@pytest.mark.parametrize(
    ("starts", "ends", "is_suppressed"), [(0, 1, True), (-1, 0, False), (1, 2, False), (-1, 1, True)]
)
def test_a_silence_holds_from_its_start_until_just_before_its_end(
    starts: int, ends: int, is_suppressed: bool
) -> None:
    silences = [_silence(starts=starts, ends=ends)]
    assert (suppressed_by(_alarm(), silences, [], [], NOW) is not None) is is_suppressed


def test_of_several_silences_the_one_that_ends_last_is_named() -> None:
    silences = [_silence(ends=1), replace(_silence(ends=3), id=UUID(int=5)), _silence(ends=2)]
    suppression = suppressed_by(_alarm(), silences, [], [], NOW)
    assert suppression is not None
    assert suppression.until == NOW + 3 * HOUR


def test_silences_that_name_owners_or_rules_are_found_among_all_others() -> None:
    texts = [
        'rule == "hot"',
        'owner == "p1"',
        'owner in ["p1", "p2"] && rule == "full"',
        "severity >= high",
        "true",
    ]
    for count in range(1, 2 ** len(texts)):
        chosen = [text for number, text in enumerate(texts) if count >> number & 1]
        silences = [
            replace(_silence(text, ends=1 + number * 7 % 3), id=UUID(int=number))
            for number, text in enumerate(chosen)
        ]
        in_force = SilencesInForce([*silences, _silence(starts=-1, ends=0)], NOW)
        for rule, owner, severity in product(("hot", "full"), ("p1", "p2", "p3"), (1, 5)):
            alarm = MatchedAlarm(UUID(int=1), rule, owner, severity)
            muting = [silence for silence in silences if silence.mutes(alarm)]
            expected = max(muting, key=lambda silence: (silence.ends_at, silence.id), default=None)
            assert in_force.of(alarm) == expected


def test_the_window_of_a_maintenance_is_named_by_its_document() -> None:
    suppression = suppressed_by(_alarm(), [_silence(source="maintenance:patch-night")], [], [], NOW)
    assert suppression is not None
    assert suppression.reason.startswith("maintenance patch-night (fan swap")


def test_a_snooze_suppresses_its_alarm_until_it_ends() -> None:
    snoozed = replace(_alarm(), snoozed_until=NOW + HOUR, snoozed_by="ann")
    suppression = suppressed_by(snoozed, [], [], [], NOW)
    assert suppression is not None
    assert (suppression.key, suppression.until) == ("snooze", NOW + HOUR)
    assert suppression.reason == "a snooze by ann until 2026-03-02T13:00:00Z"
    assert suppressed_by(snoozed, [], [], [], NOW + HOUR) is None


def test_a_stored_matcher_that_cannot_be_compiled_suppresses_nothing() -> None:
    assert suppressed_by(_alarm(), [_silence("no such thing")], [], [], NOW) is None


def test_an_open_source_inhibits_targets_with_equal_fields() -> None:
    switch = _inhibit('rule == "switch-down"', 'rule == "host-down"', "labels.site")
    source = _alarm(1, "switch-down", "switch-1", site="ams")
    assert _by_inhibit(_alarm(2, "host-down", "host-1", site="ams"), switch, source) == f"alarm:{source.id}"
    assert _by_inhibit(_alarm(2, "host-down", "host-1", site="fra"), switch, source) is None
    assert _by_inhibit(_alarm(2, "cpu-hot", "host-1", site="ams"), switch, source) is None


def test_alarms_that_both_lack_the_label_are_not_equal() -> None:
    switch = _inhibit('rule == "switch-down"', 'rule == "host-down"', "labels.site")
    assert _by_inhibit(_alarm(2, "host-down"), switch, _alarm(1, "switch-down")) is None


def test_an_alarm_never_inhibits_itself() -> None:
    everything = _inhibit("true", "true")
    assert _by_inhibit(_alarm(1), everything, _alarm(1)) is None


def test_two_alarms_that_match_both_sides_do_not_silence_each_other() -> None:
    everything = _inhibit("true", "true")
    first, second = _alarm(1), _alarm(2)
    assert _by_inhibit(first, everything, first, second) is None
    assert _by_inhibit(second, everything, first, second) is None


_RULES = ("a", "b", "c")
_ALARMS = st.lists(
    st.builds(
        lambda number, rule, owner, site: _alarm(number, rule, owner, **({"site": site} if site else {})),
        st.integers(1, 6),
        st.sampled_from(_RULES),
        st.sampled_from(("o", "p")),
        st.sampled_from(("", "ams", "fra")),
    ),
    unique_by=lambda alarm: alarm.id,
    min_size=1,
)
_MATCHERS = st.sampled_from(
    ("true", *(f'rule == "{rule}"' for rule in _RULES), 'rule != "a"', 'owner == "o"')
)


@given(_ALARMS, _MATCHERS, _MATCHERS, st.sampled_from(((), ("owner",), ("labels.site",))))
def test_one_inhibit_never_suppresses_every_open_alarm(
    alarms: list[MatchedAlarm], source: str, target: str, equal: tuple[str, ...]
) -> None:
    """Whatever is suppressed has a cause that is notified, for any single inhibit."""
    inhibit = _inhibit(source, target, *equal)
    suppressed = {alarm.id: _by_inhibit(alarm, inhibit, *alarms) for alarm in alarms}
    assert None in suppressed.values()
    assert all(key != f"alarm:{id}" for id, key in suppressed.items())


LONDON = "Europe/London"


def _windows(recurrence: dict[str, Any], now: datetime, count: int, hours: int = 2) -> list[tuple[str, str]]:
    windows = next_windows(parse(anchor=now, **recurrence), hours * HOUR, now, count)
    return [(window.starts_at.isoformat()[:16], window.ends_at.isoformat()[:16]) for window in windows]


def test_a_window_inside_the_spring_gap_begins_at_its_end_and_keeps_its_length() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    # 01:30 does not exist on 29 March in London: the clocks go from 01:00 to 02:00.
    assert _windows({"cron": "30 1 * * *", "tz": LONDON}, before, 2) == [
        ("2026-03-29T01:00", "2026-03-29T03:00"),
        ("2026-03-30T00:30", "2026-03-30T02:30"),
    ]


def test_a_window_at_half_past_two_in_berlin_follows_both_changes_of_the_clocks() -> None:
    daily = {"cron": "30 2 * * *", "tz": "Europe/Berlin"}
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert _windows(daily, spring, 2) == [
        ("2026-03-29T01:00", "2026-03-29T03:00"),
        ("2026-03-30T00:30", "2026-03-30T02:30"),
    ]
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC)
    # 02:30 comes twice on 25 October: the first pass begins the window, the second begins none.
    assert _windows(daily, autumn, 2) == [
        ("2026-10-25T00:30", "2026-10-25T02:30"),
        ("2026-10-26T01:30", "2026-10-26T03:30"),
    ]


def test_a_window_over_the_change_of_the_clocks_lasts_its_elapsed_time() -> None:
    evening = parse(cron="0 23 * * SAT", tz="Europe/Berlin")
    (window,) = next_windows(evening, 6 * HOUR, datetime(2026, 3, 28, 12, tzinfo=UTC), 1)
    assert window.ends_at - window.starts_at == 6 * HOUR


def test_a_window_in_progress_is_the_next_one() -> None:
    daily = parse(cron="0 11 * * *")
    assert next_window(daily, 2 * HOUR, NOW) == (NOW - HOUR, NOW + HOUR)
    assert next_window(daily, HOUR, NOW) == (NOW + 23 * HOUR, NOW + 24 * HOUR)


def test_after_an_outage_over_whole_windows_the_next_one_is_computed() -> None:
    daily = parse(cron="0 2 * * *")
    week = timedelta(days=7)
    last = datetime(2026, 3, 2, 2, tzinfo=UTC)
    window = next_window(daily, 2 * HOUR, NOW + week, last)
    assert window == (last + week + timedelta(days=1), last + week + timedelta(days=1) + 2 * HOUR)


def test_a_single_window_is_not_repeated() -> None:
    once = parse(at="2026-03-02T13:00:00Z")
    window = next_window(once, HOUR, NOW)
    assert window == (NOW + HOUR, NOW + 2 * HOUR)
    assert next_window(once, HOUR, window.ends_at, window.starts_at) is None
