"""Cancels runs: for an operator, for alarms that end, for a newer run that replaces them.

Guarantee: a cancelled run has no timer and no event wait left and takes no outcome. Its history has
the steps that were cancelled, with the reason. A run that has begun and has a `finally` stays active
until these steps have ended; they begin in the transaction that cancels the others, once. A cancel
of such a run ends it at once. A timer that fires or an outcome that is committed
at the same moment either comes first and is cancelled with the rest, or finds the run cancelled and
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from rules.actions.audit import audit_run
from rules.actions.queue import begin_queued
from rules.actions.run import compile_document
from rules.actions.store import read_run
from rules.lanes.batch import Writes
from rules.runbook.states import ACTIVE_STEP
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, fetch_all, fetch_one, retrying, statement
from tocsin.core.errors import Conflict, Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords, NewStep

_MAX_CONFLICTS = 100


class EndedAlarm(NamedTuple):
    """An alarm that ends the runs it has started: those of events before `seq`."""

    alarm_id: UUID
    seq: int
    transition: str
    """A run ends if its `ends_with` has it."""
    reason: str


class CancelRuns(Writes):
    """Cancels runs by id, each with its reason."""

    def __init__(self, reasons: Mapping[UUID, str]) -> None:
        self._reasons = dict(reasons)
        self.cancelled: list[UUID] = []
        self._steps: list[NewStep] = []

    async def write_timers(self, connection: Connection) -> None:
        if self._reasons:
            await connection.execute(
                statement("rules.actions/remove_all_waits"), {"refs": [str(id) for id in self._reasons]}
            )

    def actions_to_lock(self) -> Iterable[UUID]:
        return self._reasons

    async def write_entities(self, connection: Connection) -> None:
        if not self._reasons:
            return
        columns = {"ids": list(self._reasons), "reasons": list(self._reasons.values())}
        rows = await fetch_all(connection, "rules.actions/cancel_actions", columns)
        self.cancelled, self._steps, queues = [], [], []
        finals: list[tuple[UUID, int]] = []
        for id, name, owner, rule, group, correlation_id, event_id, active, reason, document in rows:
            self.cancelled.append(id)
            first_final = None if document is None else compile_document(document).first_final
            if first_final is None:
                queues.append((rule, group))
            unfinished = {int(step): entry for step, entry in active.items() if entry["state"] in ACTIVE_STEP}
            for step, entry in sorted((unfinished or {0: {"attempt": 1}}).items()):
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
            if first_final is not None:
                finals.append((id, first_final))
                self._steps.append(
                    NewStep(
                        action_id=id,
                        name=name,
                        owner=owner,
                        step=first_final,
                        attempt=1,
                        state="due",
                        correlation_id=correlation_id,
                        source_event_id=event_id,
                    )
                )
        if self.cancelled:
            await self._check_no_timers(connection)
            if finals:
                columns = {"ids": [id for id, _ in finals], "steps": [step for _, step in finals]}
                await connection.execute(statement("rules.actions/begin_finally"), columns)
            self._steps += await begin_queued(connection, queues)

    def records_to_append(self) -> NewRecords:
        return NewRecords(steps=self._steps)

    def first_steps(self) -> list[NewStep]:
        """One for each run that was cancelled."""
        first = {step.action_id: step for step in reversed(self._steps)}
        return [first[id] for id in self.cancelled]

    async def _check_no_timers(self, connection: Connection) -> None:
        """`Conflict` if a step armed a timer between the phases. The runs are locked now, so none
        can follow."""
        refs = {"refs": [str(id) for id in self.cancelled]}
        row = await fetch_one(connection, "rules.actions/has_waits", refs)
        if row is not None and row[0]:
            raise Conflict("a run armed a timer while it was cancelled")


class CancelRunsOfAlarms(CancelRuns):
    """Cancels the active runs all of whose alarms have ended, also those that this batch started.

    The runs are known only when they are locked, after the phase of the timers. Their timers are removed
    without waiting for any: one that is locked is being fired, and the clock then finds the run
    cancelled."""

    def __init__(self, ends: Sequence[EndedAlarm]) -> None:
        super().__init__({})
        self._ends = ends

    async def write_entities(self, connection: Connection) -> None:
        if not self._ends:
            return
        columns = {
            "alarms": [end.alarm_id for end in self._ends],
            "before": [end.seq for end in self._ends],
            "transitions": [end.transition for end in self._ends],
            "reasons": [end.reason for end in self._ends],
        }
        self._reasons = dict(await fetch_all(connection, "rules.actions/lock_actions_of_alarms", columns))
        await super().write_entities(connection)

    async def _check_no_timers(self, connection: Connection) -> None:
        refs = {"refs": [str(id) for id in self.cancelled]}
        await connection.execute(statement("rules.actions/remove_free_waits"), refs)


async def cancel_runs(
    connection: Connection, reasons: Mapping[UUID, str], actor: Actor | None = None
) -> list[UUID]:
    """Cancel runs in a transaction of its own, and record it in the audit if there is an `actor`.
    Returns the ids of the runs that were still active."""

    async def once() -> list[UUID]:
        for _ in range(_MAX_CONFLICTS):
            cancelling = CancelRuns(reasons)
            try:
                async with connection.transaction():
                    await cancelling.write_timers(connection)
                    await cancelling.write_entities(connection)
                    if actor is not None:
                        for step in cancelling.first_steps():
                            await audit_run(
                                connection, actor, "cancel", step.action_id, step.name, step.owner
                            )
                    await append_records(connection, cancelling.records_to_append())
                return cancelling.cancelled
            except Conflict:
                continue
        raise Refused("the run changes faster than it can be cancelled", remedy="try again")

    return await retrying(once)


async def cancel_run(connection: Connection, id: UUID, actor: Actor) -> None:
    """Cancel a run for an operator. `Refused` if it is not active."""
    if await cancel_runs(connection, {id: f"cancelled by {actor.who}"}, actor):
        return
    run = await read_run(connection, id)
    if run is None:
        raise Refused(f"there is no action {id}", remedy="`tocsin actions` lists them")
    raise Refused(f"action {id} has ended as {run.state}: there is nothing to cancel")
