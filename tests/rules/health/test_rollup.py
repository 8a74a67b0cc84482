"""The roll-up alone: the effect of each condition of a member on its system."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.health.observations import MemberAlarm
from rules.health.rollup import MemberCondition, SeenSeries, SeverityThresholds, member_condition, roll_up

CONDITIONS = get_args(MemberCondition)
SIX = SeverityThresholds.for_levels(6)
T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
MEMBERS = st.lists(st.tuples(st.sampled_from(CONDITIONS), st.booleans()), min_size=1)


def alarm(severity: int, since: datetime) -> MemberAlarm:
    return MemberAlarm(severity, since, frozenset({"dsp.a"}))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([("ok", True)], ("ok", None)),
        ([("ok", True), ("outage", True), ("stale", True)], ("outage", None)),
        ([("ok", True), ("stale", True), ("degraded", True)], ("unknown", "stale")),
        ([("ok", True), ("degraded", True)], ("degraded", None)),
        ([("ok", True), ("outage", False)], ("degraded", None)),
        ([("ok", True), ("stale", False)], ("degraded", None)),
        ([("ok", True), ("no-data", True), ("uncovered", True)], ("ok", None)),
        ([("ok", True), ("no-data", False)], ("ok", None)),
        ([("no-data", True), ("uncovered", True), ("ok", False)], ("unknown", "no-data")),
        ([("uncovered", True)], ("unknown", "uncovered")),
    ],
)
def test_the_worst_that_counts_decides(
    members: list[tuple[MemberCondition, bool]], expected: tuple[str, str | None]
) -> None:
    assert roll_up(members) == expected


@given(MEMBERS)
def test_the_order_of_members_does_not_matter(members: list[tuple[MemberCondition, bool]]) -> None:
    assert roll_up(members) == roll_up(reversed(members)) == roll_up(members * 2)


@given(MEMBERS)
def test_an_optional_member_without_data_changes_nothing(members: list[tuple[MemberCondition, bool]]) -> None:
    assert roll_up([*members, ("no-data", False)]) == roll_up(members)


@given(MEMBERS)
def test_an_optional_member_alone_never_makes_an_outage_or_hides_one(
    members: list[tuple[MemberCondition, bool]],
) -> None:
    health, _ = roll_up([*members, ("outage", False)])
    assert (health == "outage") == (roll_up(members)[0] == "outage")
    assert health != "ok"


@given(MEMBERS)
def test_a_reason_is_given_exactly_when_it_is_unknown(members: list[tuple[MemberCondition, bool]]) -> None:
    health, reason = roll_up(members)
    assert (health == "unknown") == (reason is not None)


def test_the_lowest_level_never_counts_and_the_upper_half_is_an_outage() -> None:
    conditions = [
        member_condition(SeenSeries(), [alarm(severity, T0)], True, SIX) for severity in range(1, 7)
    ]
    assert conditions == ["ok", "degraded", "degraded", "outage", "outage", "outage"]
    assert SeverityThresholds.for_levels(1) == (1, 1)
    assert SeverityThresholds.for_levels(3) == (2, 2)


def test_an_alarm_that_began_when_the_series_was_stale_does_not_count() -> None:
    stale = SeenSeries(T0)
    assert member_condition(stale, [alarm(6, T0)], True, SIX) == "stale"
    assert member_condition(stale, [alarm(6, T0 + timedelta(1))], True, SIX) == "stale"
    assert member_condition(stale, [alarm(6, T0 - timedelta(1))], True, SIX) == "outage"


def test_a_member_without_rules_is_uncovered_only_once_it_sends_data() -> None:
    assert member_condition(None, [], False, SIX) == "no-data"
    assert member_condition(SeenSeries(), [], False, SIX) == "uncovered"
    assert member_condition(SeenSeries(), [], True, SIX) == "ok"
