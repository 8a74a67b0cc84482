"""Admission of events that match a rule: rate limits, groups and overlaps, by instants alone."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.dispatch.admission import ActiveRuns, Admission, admit, group_key
from schemas.documents.action_rule import ActionRuleDocument
from tests.clock.clock_setup import at

IDS = [uuid.UUID(int=number) for number in range(1, 40)]


def rule(**keys: Any) -> ActionRuleDocument:
    return ActionRuleDocument.model_validate(
        {"name": "page", "on": "event", "when": "true", "action": "call", **keys}
    )


def admitted(
    document: ActionRuleDocument, *seconds: float, active: ActiveRuns | None = None
) -> list[Admission]:
    active = active or ActiveRuns()
    starts: list[datetime] = []
    return [admit(document, IDS[place], at(second), active, starts) for place, second in enumerate(seconds)]


def states(admissions: list[Admission]) -> list[str]:
    return ["joins" if one.joins else one.state for one in admissions]


def test_by_default_every_event_has_a_run() -> None:
    assert states(admitted(rule(), 0, 0, 1)) == ["running"] * 3


def test_what_exceeds_a_limit_gathers_in_one_run_that_begins_when_the_limit_allows_it() -> None:
    limited = rule(rate_limit={"count": 2, "per": "10s"})
    found = admitted(limited, 0, 1, 5, 9.9)
    assert states(found) == ["running", "running", "gathering", "joins"]
    assert found[2].begins_at == at(10), "ten seconds after the first start"


def test_a_run_that_a_limit_delayed_counts_from_the_instant_at_which_it_begins() -> None:
    limited = rule(rate_limit={"count": 1, "per": "10s"})
    starts = list[datetime]()
    assert admit(limited, IDS[0], at(0), ActiveRuns(), starts).state == "running"
    assert admit(limited, IDS[1], at(3), ActiveRuns(), starts).begins_at == at(10)
    # Its run has begun, so the next one waits for ten seconds more.
    assert admit(limited, IDS[2], at(12), ActiveRuns(begun=[IDS[1]]), starts).begins_at == at(20)
    assert admit(limited, IDS[3], at(31), ActiveRuns(), starts).state == "running"


def test_groups_that_a_limit_delays_begin_one_after_the_other() -> None:
    limited = rule(group_by=["owner"], group_wait="1s", rate_limit={"count": 1, "per": "10s"})
    starts = list[datetime]()
    found = [admit(limited, IDS[place], at(place), ActiveRuns(), starts) for place in range(3)]
    assert [admission.begins_at for admission in found] == [at(1), at(10), at(20)]


def test_a_start_that_overlap_skips_does_not_count_towards_the_limit() -> None:
    careful = rule(rate_limit={"count": 2, "per": "10s"}, overlap="skip")
    active, starts = ActiveRuns(), list[datetime]()
    found = [admit(careful, IDS[place], at(place), active, starts) for place in range(2)]
    active.begun.clear()
    found.append(admit(careful, IDS[2], at(2), active, starts))
    assert states(found) == ["running", "skipped", "running"]


def test_a_group_behind_a_run_gathers_before_it_queues() -> None:
    queued = rule(overlap="queue", group_wait="5s")
    active = ActiveRuns(begun=[IDS[30]])
    assert states(admitted(queued, 0, 1, active=active)) == ["gathering", "joins"]


def test_events_join_a_group_that_is_queued_behind_a_run() -> None:
    queued = rule(overlap="queue", group_wait="5s")
    active = ActiveRuns(begun=[IDS[30], IDS[31]], queued=IDS[31])
    (one,) = admitted(queued, 0, active=active)
    assert one == Admission("queued", joins=IDS[31])


def test_overlap_skip_names_the_active_run() -> None:
    (one,) = admitted(rule(overlap="skip"), 0, active=ActiveRuns(begun=[IDS[9]]))
    assert one == Admission("skipped", reason=f"overlap: run {IDS[9]} is active")


def test_overlap_queue_takes_turns() -> None:
    assert states(admitted(rule(overlap="queue"), 0, 1, 2)) == ["running", "queued", "queued"]


def test_overlap_replace_cancels_the_active_run() -> None:
    first, second, third = admitted(rule(overlap="replace"), 0, 1, 2)
    assert (first.replaces, second.replaces, third.replaces) == ((), (IDS[0],), (IDS[1],))


def test_a_group_gathers_and_the_others_join_it() -> None:
    found = admitted(rule(group_by=["owner"], group_wait="30s"), 0, 1, 2)
    assert states(found) == ["gathering", "joins", "joins"]
    assert {one.joins for one in found[1:]} == {IDS[0]}


def test_a_limit_counts_groups_and_not_their_events() -> None:
    grouped = rule(group_by=["owner"], group_wait="30s", rate_limit={"count": 1, "per": "1h"})
    active, starts = ActiveRuns(), list[datetime]()
    assert admit(grouped, IDS[0], at(0), active, starts).state == "gathering"
    assert admit(grouped, IDS[1], at(1), active, starts).joins == IDS[0]
    active = ActiveRuns(begun=[IDS[0]])
    late = admit(grouped, IDS[2], at(40), active, starts)
    assert (late.state, late.begins_at) == ("gathering", at(3_600))


@pytest.mark.parametrize(
    ("by", "facts", "key"),
    [
        ([], {"owner": "a"}, ""),
        (["owner"], {"owner": "a"}, '["a"]'),
        (["owner", "severity"], {"owner": 'a"', "severity": 4}, '["a\\"", 4]'),
        (["payload.zone.id"], {"payload": {"zone": {"id": "n"}}}, '["n"]'),
        (["payload.zone.id"], {"payload": {"zone": 7}}, "[null]"),
        (["payload.zone"], {"payload": {"zone": {"b": 1, "a": 2}}}, '[{"a": 2, "b": 1}]'),
    ],
)
def test_events_of_one_group_have_one_key(by: list[str], facts: dict[str, Any], key: str) -> None:
    grouped = rule(group_by=by, group_wait="1s") if by else rule()
    assert group_key(grouped, facts) == key


@given(
    st.lists(st.integers(0, 5), max_size=30),
    st.integers(1, 4),
    st.sampled_from(["allow", "skip", "queue", "replace"]),
)
def test_never_more_than_the_limit_starts_within_its_duration(
    gaps: list[int], most: int, overlap: str
) -> None:
    limited = rule(rate_limit={"count": most, "per": "10s"}, overlap=overlap)
    now, instants = 0, []
    for gap in gaps:
        now += gap
        instants.append(now)
    found = admitted(limited, *instants)
    started = [
        one.begins_at or at(second)
        for second, one in zip(instants, found, strict=True)
        if one.state != "skipped" and one.joins is None
    ]
    for first in started:
        assert sum(first <= start < first + timedelta(seconds=10) for start in started) <= most


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"transitions": ["resolved"]}, "has 'transitions', which belongs to 'on: alarm'"),
        ({"group_by": ["owner"]}, "has 'group_by' without effect"),
        ({"group_wait": "0s"}, "has 'group_wait: 0s' without effect"),
        ({"rate_limit": {"count": 1, "per": "0s"}}, "has 'rate_limit' per 0s"),
        ({"group_by": ["ownr"], "group_wait": "1s"}, "'ownr' cannot group events: use origin, type"),
        ({"group_by": ["id"], "group_wait": "1s"}, "'id' cannot group events"),
    ],
)
def test_keys_without_effect_are_rejected(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        rule(**keys)


def test_a_rule_over_events_needs_a_condition_and_one_over_alarms_does_not() -> None:
    with pytest.raises(ValueError, match="would start for every event: add 'when'"):
        ActionRuleDocument.model_validate({"name": "a", "on": "event", "action": "b"})
    alarms = ActionRuleDocument.model_validate({"name": "a", "on": "alarm", "action": "b"})
    assert (alarms.condition, alarms.transitions) == ("true", ("opened",))
