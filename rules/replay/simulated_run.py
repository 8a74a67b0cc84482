"""One run of a simulation in memory. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rules.actions.run import ActionRun
from rules.dispatch.matcher import Match
from rules.dispatch.wait_matcher import EventWait
from schemas.wire.alarm_events import event_type

Facts = Mapping[str, Any]
_RESOLVED, _ACKNOWLEDGED = event_type("resolved"), event_type("acknowledged")


@dataclass
class SimulatedRun:
    id: UUID
    match: Match
    group: str
    state: str
    events: list[Facts]
    alarm_id: UUID | None
    lineage: tuple[str, ...]
    started_at: datetime
    after_seq: int
    """The seq of the event that started the previous run of the rule."""
    active: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    waits: dict[int, EventWait] = field(default_factory=dict)
    ending: str | None = None
    """Why the run ends, once its `finally` has begun."""
    reason: str | None = None

    @property
    def alarm_ids(self) -> list[UUID]:
        """The alarms of its events, in the order in which they joined."""
        return list(dict.fromkeys(event["alarm_id"] for event in self.events if event.get("alarm_id")))

    @property
    def next_lineage(self) -> tuple[str, ...]:
        """The lineage of what this run causes."""
        return (*self.lineage, self.match.rule)

    def action_run(self, at: datetime) -> ActionRun:
        event = self.events[0]
        return ActionRun(
            id=self.id,
            name=self.match.action,
            rule=self.match.rule,
            group_key=self.group,
            document=self.match.document,
            state=self.state,
            active=self.active,
            answers=self.answers,
            owner=event["owner"],
            alarm_id=self.alarm_id,
            event_id=UUID(event["id"]),
            event_seq=event["seq"],
            correlation_id=UUID(event["correlation_id"]),
            lineage=self.lineage,
            ending=self.ending,
            version=1,
            started_at=self.started_at,
            read_at=at,
        )


def has_ended(run: SimulatedRun, event: Facts, alarm_of: Callable[[UUID | None], Facts]) -> bool:
    """Whether all alarms of a run have ended with this event; see lock_actions_of_alarms.sql."""
    ends_with = run.match.ends_with
    for link in run.events:
        if link.get("alarm_id") == event["alarm_id"] and link["seq"] < event["seq"]:
            continue
        alarm = alarm_of(link.get("alarm_id"))
        is_resolved = alarm["state"] == "resolved" and "resolved" in ends_with
        is_acknowledged = bool(alarm["acknowledged"]) and "acknowledged" in ends_with
        is_report = link["type"] == _RESOLVED or (
            link["type"] == _ACKNOWLEDGED and alarm["state"] != "resolved"
        )
        if is_report or not (is_resolved or is_acknowledged):
            return False
    return True


def woken_entry(entry: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """The entry of a step that rested or was held, and is due."""
    return {**{key: value for key, value in entry.items() if key != "held"}, **changes, "state": "due"}
