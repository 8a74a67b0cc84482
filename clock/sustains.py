"""Sustains: the condition has held for long enough, so the alarm opens, or resolves; or a snooze is over.

Guarantee: a sustain that fires moves the alarm, the state of its rule and the log in one transaction, at its nominal
time, however late the clock is (I4: recorded once, as the alarm's edge). It never speaks beyond what was read: until
its partition is complete up to the nominal time, it is held. What the event says was decided by the engine when it
armed the timer; nothing is evaluated here.

Why reading the alarm without a lock is safe: whoever changes an alarm's state removes or moves its timer first, and we
have that row. A timer whose alarm has moved on regardless is consumed and says nothing; so is the snooze of an alarm
that resolves at the same instant, or before it in the same batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from clock.kinds import Bounds, Plan, remove_timers
from schemas.wire.alarm_events import TIMED_TRANSITIONS, AlarmRef, transition_event
from tocsin.core.columns import column
from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent


class SustainRow(NamedTuple):
    """One row of clock/lock_due_sustains; `ref` is the alarm's id. Of a held row only the place is known."""

    ctid: str
    ref: str
    key: str
    fire_at: datetime
    nominal_at: datetime
    generation: int
    payload: dict[str, Any]
    held: bool
    event_rule: str | None
    owner: str
    state: str
    severity: int
    correlation_id: uuid.UUID
    source_event_id: uuid.UUID | None

    @property
    def name(self) -> str:
        return f"{self.event_rule} of {self.owner!r}"


@dataclass(slots=True)
class SustainPlan(Plan):
    consumed: list[str] = field(default_factory=list)
    moved: list[SustainRow] = field(default_factory=list)

    def due_s(self) -> list[float]:
        return [row.fire_at.timestamp() for row in self.moved]


class Sustains:
    @property
    def kind(self) -> str:
        return "for-sustain"

    async def lock(self, connection: Connection, bounds: Bounds) -> list[SustainRow]:
        cursor = await connection.execute(statement("clock/lock_due_sustains"), bounds)
        return [SustainRow(*row) for row in await cursor.fetchall()]

    async def settle(self, connection: Connection, rows: Sequence[SustainRow], now: datetime) -> SustainPlan:
        plan = self.plan(rows)
        await remove_timers(connection, plan.consumed)
        return plan

    def plan(self, rows: Sequence[SustainRow]) -> SustainPlan:
        plan = SustainPlan(considered=len(rows))
        resolved = set()
        for row in rows:
            if row.key not in TIMED_TRANSITIONS:
                plan.failed.append((row, _unknown_key(row.key)))
                continue
            plan.consumed.append(row.ctid)
            if (
                row.event_rule is None
                or row.state != TIMED_TRANSITIONS[row.key].required_state
                or row.ref in resolved
            ):
                continue
            plan.moved.append(row)
            if row.key == "clear":
                resolved.add(row.ref)
        plan.settled, plan.fires = len(plan.consumed), len(plan.moved)
        return plan

    async def write(self, connection: Connection, plan: SustainPlan, now: datetime, epoch: int) -> None:
        stated = [row for row in plan.moved if row.key != "snooze"]
        if stated:
            await connection.execute(
                statement("clock/move_rule_states"),
                {
                    "alarm_ids": column(row.ref for row in stated),
                    "rules": column(row.event_rule for row in stated),
                    "owners": column(row.owner for row in stated),
                    "keys": column(row.key for row in stated),
                },
            )
        # A snooze may end in the batch that resolves its alarm: an update sees each alarm once, as it is in the end.
        last = {row.ref: row for row in plan.moved}.values()
        if last:
            await connection.execute(
                statement("clock/move_alarms"),
                {
                    "alarm_ids": column(row.ref for row in last),
                    "keys": column(row.key for row in last),
                    "at": column(row.nominal_at for row in last),
                    "reasons": column(row.payload.get("reason") for row in last),
                },
            )
        await append_events(connection, [_event(row) for row in plan.moved], epoch=epoch)


def _event(row: SustainRow) -> NewEvent:
    alarm = AlarmRef(
        uuid.UUID(row.ref),
        row.event_rule or "",
        row.owner,
        row.severity,
        row.correlation_id,
        row.source_event_id,
    )
    return transition_event(alarm, TIMED_TRANSITIONS[row.key].transition, row.nominal_at, row.payload)


def _unknown_key(key: str) -> str:
    return f"a sustain is for one of {', '.join(TIMED_TRANSITIONS)}, not {key!r}"
