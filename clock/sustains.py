"""Sustains: open or resolve an alarm whose condition has held for long enough; end a snooze.

Guarantee: a sustain that fires moves the alarm, the state of its rule and the log in one
transaction, at its nominal time, however late the clock is (I4: one transition event). It never
fires beyond the watermark: until its partition has been read up to the nominal time, it is held.
The engine decided the content of the event when it armed the timer; nothing is evaluated here.

Why reading the alarm without a lock is safe: every change of an alarm's state removes or moves its
timer first, and this transaction has locked that row. A timer whose alarm has changed regardless is
consumed without an event, and so is the snooze of an alarm that resolves at the same instant or
earlier in the same batch.

On failure: a sustain with an unknown key fails alone. After any other error the batch is rolled
back, and `term` isolates the row that caused it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from clock.kinds import FiringPlan, ScanBounds, remove_timers
from schemas.wire.alarm_events import TIMED_TRANSITIONS, AlarmRef, transition_event
from tocsin.core.columns import column
from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent


class SustainRow(NamedTuple):
    """One row of clock/lock_due_sustains; `ref` is the id of the alarm.

    A held row has only its key and time.
    """

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
    instance: str
    state: str
    severity: int
    correlation_id: uuid.UUID
    source_event_id: uuid.UUID | None

    @property
    def name(self) -> str:
        return f"{self.event_rule} of {self.owner!r}"


@dataclass(slots=True)
class SustainPlan(FiringPlan):
    consumed: list[str] = field(default_factory=list)
    moved: list[SustainRow] = field(default_factory=list)

    @property
    def due_times_s(self) -> list[float]:
        return [row.fire_at.timestamp() for row in self.moved]


class Sustains:
    """The kind `for-sustain`: moves an alarm and appends the event of the transition."""

    @property
    def kind(self) -> str:
        return "for-sustain"

    async def lock(self, connection: Connection, bounds: ScanBounds) -> list[SustainRow]:
        cursor = await connection.execute(statement("clock/lock_due_sustains"), bounds)
        return [SustainRow(*row) for row in await cursor.fetchall()]

    async def plan(self, connection: Connection, rows: Sequence[SustainRow], now: datetime) -> SustainPlan:
        plan = self.decide(rows)
        await remove_timers(connection, plan.consumed)
        return plan

    def decide(self, rows: Sequence[SustainRow]) -> SustainPlan:
        plan = SustainPlan(considered=len(rows))
        resolved_alarms = set()
        for row in rows:
            if row.key not in TIMED_TRANSITIONS:
                plan.failed.append((row, _unknown_key(row.key)))
                continue
            plan.consumed.append(row.ctid)
            if (
                row.event_rule is None
                or row.state != TIMED_TRANSITIONS[row.key].required_state
                or row.ref in resolved_alarms
            ):
                continue
            plan.moved.append(row)
            if row.key == "clear":
                resolved_alarms.add(row.ref)
        plan.processed, plan.fires = len(plan.consumed), len(plan.moved)
        return plan

    async def write(self, connection: Connection, plan: SustainPlan, now: datetime, epoch: int) -> None:
        state_changes = [row for row in plan.moved if row.key != "snooze"]
        if state_changes:
            await connection.execute(
                statement("clock/move_rule_states"),
                {
                    "alarm_ids": column(row.ref for row in state_changes),
                    "rules": column(row.event_rule for row in state_changes),
                    "owners": column(row.owner for row in state_changes),
                    "instances": column(row.instance for row in state_changes),
                    "keys": column(row.key for row in state_changes),
                },
            )
        # A snooze may end in the batch that resolves its alarm. An update changes each row once, so
        # the last one counts.
        last_of_alarm = {row.ref: row for row in plan.moved}.values()
        if last_of_alarm:
            await connection.execute(
                statement("clock/move_alarms"),
                {
                    "alarm_ids": column(row.ref for row in last_of_alarm),
                    "keys": column(row.key for row in last_of_alarm),
                    "at": column(row.nominal_at for row in last_of_alarm),
                    "reasons": column(row.payload.get("reason") for row in last_of_alarm),
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
    return f"the key of a sustain is one of {', '.join(TIMED_TRANSITIONS)}, not {key!r}"
