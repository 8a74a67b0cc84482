"""Steps that wait for an event, and the record lane that brings it.

Guarantee: a step that waits is woken by the first event behind the one that made it wait, in the order of the log, that
meets its condition; `match` is pure. The step becomes due in the transaction of the lane's position, so an
event wakes it once. Of an event and a deadline at the same moment, the first to lock the action wins.

Why the lane and not the workers: it sees every event once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from rules.lanes.batch import Writes
from rules.language.cel import Condition, RuleIndex, compile_wait_condition
from rules.language.cel.steps import wait_activation
from schemas.wire.event import Event
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewStep, Records

_log = structlog.get_logger()
_TRIGGER = ("id", "type", "owner", "schedule", "rule", "correlation_id", "payload")


class EventWait(NamedTuple):
    action_id: UUID
    step: int
    attempt: int
    condition: str
    after_seq: int
    trigger: Mapping[str, Any]
    """The event that started the action."""


class Met(NamedTuple):
    wait: EventWait
    event_seq: int


def match(waits: Sequence[EventWait], events: Sequence[Mapping[str, Any]]) -> list[Met]:
    """The first event for each wait that has one. `events` are facts, in the order of `seq`."""
    index = _index(frozenset(wait.condition for wait in waits))
    waiting: dict[str, list[EventWait]] = {}
    for wait in waits:
        waiting.setdefault(wait.condition, []).append(wait)
    met: list[Met] = []
    for event in events:
        for text in index.candidates(event):
            still = waiting[text]
            found = [wait for wait in still if wait.after_seq < event["seq"] and _meets(text, wait, event)]
            met += [Met(wait, int(event["seq"])) for wait in found]
            waiting[text] = [wait for wait in still if wait not in found]
    return met


def _meets(text: str, wait: EventWait, event: Mapping[str, Any]) -> bool:
    condition = _condition(text)
    assert condition is not None
    try:
        return condition.matches(wait_activation(event, wait.trigger))
    except InvalidInput as error:
        _log.error("event cannot be judged", seq=event["seq"], error=error)
        return False


@lru_cache(maxsize=64)
def _index(conditions: frozenset[str]) -> RuleIndex:
    usable = {text: _condition(text) for text in sorted(conditions)}
    return RuleIndex({text: condition for text, condition in usable.items() if condition is not None})


@lru_cache(maxsize=4_096)
def _condition(text: str) -> Condition | None:
    """Conditions were checked when they were applied. One that a newer engine refuses is met by nothing, and said."""
    try:
        return compile_wait_condition(text, rule="wait")
    except InvalidInput as error:
        _log.error("condition cannot be used", until_event=text, error=error)
        return None


class EventWaits:
    """Joins the record lane."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> WakeActions:
        if not events:
            return WakeActions([])
        cursor = await connection.execute(
            statement("rules.dispatch/read_event_waits"), {"newest": events[-1].seq}
        )
        waits = [_wait(row) for row in await cursor.fetchall()]
        return WakeActions(match(waits, [event.facts() for event in events]) if waits else [])


def _wait(row: Sequence[Any]) -> EventWait:
    action_id, step, attempt, condition, after_seq, *trigger = row
    return EventWait(
        action_id, step, attempt, condition, after_seq, dict(zip(_TRIGGER, trigger, strict=True))
    )


class WakeActions(Writes):
    def __init__(self, met: Sequence[Met]) -> None:
        self._met = met
        self._steps: list[NewStep] = []

    def actions(self) -> Iterable[UUID]:
        return {one.wait.action_id for one in self._met}

    async def entities(self, connection: Connection) -> None:
        if not self._met:
            return
        columns = {
            "ids": [one.wait.action_id for one in self._met],
            "steps": [one.wait.step for one in self._met],
            "attempts": [one.wait.attempt for one in self._met],
            "seqs": [one.event_seq for one in self._met],
        }
        cursor = await connection.execute(statement("rules.dispatch/wake_actions"), columns)
        self._steps = [
            NewStep(
                action_id=id,
                name=name,
                owner=owner,
                step=step,
                attempt=attempt,
                state="due",
                correlation_id=correlation_id,
                source_event_id=event_id,
                result={"met": True},
            )
            for id, name, owner, correlation_id, event_id, step, attempt in await cursor.fetchall()
        ]
        await connection.execute(statement("rules.dispatch/forget_met_waits"), columns)

    def records(self) -> Records:
        return Records(steps=self._steps)
