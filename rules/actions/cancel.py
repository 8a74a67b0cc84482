"""Ending actions before their time: by a person, by their alarm, by a newer one that replaces them.

Guarantee: a cancelled action has no timer and no wait left, takes no outcome any more, and its history says which
steps were cancelled and why. A fire or an outcome at the same moment either came before, and is cancelled with the
rest, or finds the action cancelled and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from rules.actions.queue import begin_queued
from rules.actions.store import read_action
from rules.lanes.batch import Writes
from schemas.wire.event import Event
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, fetch_all, fetch_one, retrying, statement
from tocsin.core.errors import Conflict, Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import NewStep, Records

_ENDS_ESCALATION = {
    "alarm-resolved": "the alarm resolved",
    "alarm-acknowledged": "the alarm was acknowledged",
}
_OVERTAKEN_AT_MOST = 100


class Ending(NamedTuple):
    """An alarm that ends what it started: everything that an event before `seq` began."""

    alarm_id: UUID
    seq: int
    reason: str


class CancelActions(Writes):
    """Actions by id, each with its reason."""

    def __init__(self, reasons: Mapping[UUID, str]) -> None:
        self._reasons = dict(reasons)
        self.cancelled: list[UUID] = []
        self._steps: list[NewStep] = []

    async def timers(self, connection: Connection) -> None:
        if self._reasons:
            await connection.execute(
                statement("rules.actions/remove_all_waits"), {"refs": [str(id) for id in self._reasons]}
            )

    def actions(self) -> Iterable[UUID]:
        return self._reasons

    async def entities(self, connection: Connection) -> None:
        if not self._reasons:
            return
        columns = {"ids": list(self._reasons), "reasons": list(self._reasons.values())}
        rows = await fetch_all(connection, "rules.actions/cancel_actions", columns)
        self.cancelled, self._steps, turns = [], [], []
        for id, name, owner, rule, group, correlation_id, event_id, active, reason in rows:
            self.cancelled.append(id)
            turns.append((rule, group))
            under_way = {
                int(step): entry for step, entry in active.items() if entry["state"] in ("due", "waiting")
            }
            for step, entry in sorted((under_way or {0: {"attempt": 1}}).items()):
                self._steps.append(
                    NewStep(
                        action_id=id,
                        name=name,
                        owner=owner,
                        step=step,
                        attempt=entry["attempt"],
                        state="cancelled",
                        correlation_id=correlation_id,
                        source_event_id=event_id,
                        result={"reason": reason},
                    )
                )
        if self.cancelled:
            await self._refuse_new_timers(connection)
            self._steps += await begin_queued(connection, turns)

    def records(self) -> Records:
        return Records(steps=self._steps)

    def first_steps(self) -> list[NewStep]:
        """One for each action that was cancelled."""
        first = {step.action_id: step for step in reversed(self._steps)}
        return [first[id] for id in self.cancelled]

    async def _refuse_new_timers(self, connection: Connection) -> None:
        """A step may have begun to wait between our two phases; now that its action is locked, nothing can."""
        refs = {"refs": [str(id) for id in self.cancelled]}
        row = await fetch_one(connection, "rules.actions/have_waits", refs)
        if row is not None and row[0]:
            raise Conflict("an action armed a timer while it was cancelled")


class CancelOfAlarms(CancelActions):
    """Everything that alarms have started and that is under way, also what this very batch started."""

    def __init__(self, endings: Sequence[Ending], known: Sequence[UUID]) -> None:
        super().__init__(dict.fromkeys(known, ""))
        self._endings = endings

    async def entities(self, connection: Connection) -> None:
        if not self._endings:
            return
        columns = {
            "alarms": [ending.alarm_id for ending in self._endings],
            "before": [ending.seq for ending in self._endings],
            "reasons": [ending.reason for ending in self._endings],
        }
        cursor = await connection.execute(statement("rules.actions/lock_actions_of_alarms"), columns)
        self._reasons = {id: reason for id, reason in await cursor.fetchall()}
        await super().entities(connection)


class AlarmEndings:
    """Joins the record lane behind what starts actions: an alarm that ends or is acknowledged stops its escalation."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> CancelOfAlarms:
        endings = [
            Ending(event.alarmid, event.seq, _ENDS_ESCALATION[event.type])
            for event in events
            if event.alarmid is not None and event.type in _ENDS_ESCALATION
        ]
        known: list[UUID] = []
        if endings:
            cursor = await connection.execute(
                statement("rules.actions/find_actions_of_alarms"),
                {"alarms": [ending.alarm_id for ending in endings]},
            )
            known = [id for (id,) in await cursor.fetchall()]
        return CancelOfAlarms(endings, known)


async def cancel_actions(
    connection: Connection, reasons: Mapping[UUID, str], actor: Actor | None = None
) -> list[UUID]:
    """In a transaction of its own; the ids of those that were still under way. With `act`, in the audit as well."""

    async def once() -> list[UUID]:
        for _ in range(_OVERTAKEN_AT_MOST):
            cancelling = CancelActions(reasons)
            try:
                async with connection.transaction():
                    await cancelling.timers(connection)
                    await cancelling.entities(connection)
                    if actor is not None:
                        for step in cancelling.first_steps():
                            await audit(connection, actor, "cancel", step)
                    await append_records(connection, cancelling.records())
                return cancelling.cancelled
            except Conflict:
                continue
        raise Refused("the action moves on faster than it can be cancelled", remedy="try again")

    return await retrying(once)


async def cancel_action(connection: Connection, id: UUID, actor: Actor) -> None:
    """By a person."""
    if await cancel_actions(connection, {id: f"cancelled by {actor.who}"}, actor):
        return
    action = await read_action(connection, id)
    if action is None:
        raise Refused(f"there is no action {id}", remedy="`tocsin actions` lists them")
    raise Refused(f"action {id} has ended as {action.state}: there is nothing to cancel")


async def audit(connection: Connection, actor: Actor, verb: str, step: NewStep) -> None:
    """Record what an operator did to the action of a step."""
    new = {"id": str(step.action_id)}
    await record_audit(connection, actor, verb, "action", step.name, owner=step.owner, new=new)
