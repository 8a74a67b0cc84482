"""An event wait ends with the first event after it that meets its condition, in the order of the
log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rules.dispatch.wait_matcher import EventWait, match_waits

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def event(seq: int, type: str = "go", **facts: Any) -> dict[str, Any]:
    return {"seq": seq, "type": type, "ts": T0, "recorded_at": T0, "owner": "", "payload": {}, **facts}


def wait(number: int, condition: str = 'type == "go"', after: int = 0, **trigger: Any) -> EventWait:
    return EventWait(UUID(int=number), 0, 1, condition, after, trigger)


def met(waits: list[EventWait], *events: dict[str, Any]) -> list[tuple[int, int]]:
    return [(one.wait.run_id.int, one.event_seq) for one in match_waits(waits, events)]


def test_a_wait_ends_with_the_first_event_that_meets_its_condition() -> None:
    assert met([wait(1)], event(5, "other"), event(6), event(7)) == [(1, 6)]
    assert met([wait(1)], event(5, "other")) == []


def test_an_event_before_the_wait_does_not_count() -> None:
    assert met([wait(1, after=6)], event(5), event(6), event(7)) == [(1, 7)]


def test_one_event_ends_many_waits_and_each_wait_ends_once() -> None:
    waits = [wait(1), wait(2), wait(3, 'type == "go" && payload.n > 1'), wait(4, 'type == "stop"')]
    events = [event(5), event(6, payload={"n": 2}), event(7, "stop")]
    assert sorted(met(waits, *events)) == [(1, 5), (2, 5), (3, 6), (4, 7)]


def test_a_condition_compares_with_what_started_the_action() -> None:
    condition = 'type == "go" && owner == trigger.owner && payload.order == trigger.payload.order'
    waits = [
        wait(1, condition, owner="a", payload={"order": 1}),
        wait(2, condition, owner="b", payload={"order": 1}),
    ]
    assert met(waits, event(5, owner="b", payload={"order": 1})) == [(2, 5)]


def test_a_condition_that_fails_or_cannot_be_compiled_is_met_by_nothing() -> None:
    waits = [wait(1, "payload.missing > 1"), wait(2, "no such thing"), wait(3, "true")]
    assert met(waits, event(5)) == [(3, 5)]


def test_an_event_whose_data_cannot_be_evaluated_is_passed_over() -> None:
    assert met([wait(1)], event(5, payload={"n": float("inf")}), event(6)) == [(1, 6)]
