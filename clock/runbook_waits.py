"""Runbook waits: a waiting step becomes due, or a group that was gathering begins.

Guarantee: the timer is consumed and its step appended as `due` in one transaction, and only if the
run still waits for it. A run that was cancelled, has ended or has moved on ignores the fire. The
clock does not know what the step is or what follows it: workers perform it.

Keys: the number of the step (a wait, a backoff, a deadline), `group` (a gathering run begins), and
`<step>/report` (the outcome of a dispatched step, armed by `tocsin.report`). The payload has the
step and what is merged into its entry of `action.active`: `attempt`, `lapsed` or `report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from clock.kinds import FiringPlan, ScanBounds, remove_timers
from tocsin.core.columns import texts
from tocsin.core.db import Connection, statement


class WaitRow(NamedTuple):
    """One row of clock/lock_due_waits; `ref` is the id of the run."""

    ctid: str
    ref: str
    key: str
    fire_at: datetime
    generation: int
    payload: str
    held: bool

    @property
    def name(self) -> str:
        return f"run {self.ref}"


@dataclass(slots=True)
class WaitPlan(FiringPlan):
    rows: Sequence[WaitRow] = field(default_factory=list)

    @property
    def due_times_s(self) -> list[float]:
        return [row.fire_at.timestamp() for row in self.rows]


class RunbookWaits:
    """The kind `runbook-wait`: consumes the timer and makes the step of its run due."""

    @property
    def kind(self) -> str:
        return "runbook-wait"

    async def lock(self, connection: Connection, bounds: ScanBounds) -> list[WaitRow]:
        cursor = await connection.execute(statement("clock/lock_due_waits"), bounds, binary=True)
        return [WaitRow(*row) for row in await cursor.fetchall()]

    async def plan(self, connection: Connection, rows: Sequence[WaitRow], now: datetime) -> WaitPlan:
        await remove_timers(connection, [row.ctid for row in rows])
        return WaitPlan(considered=len(rows), processed=len(rows), fires=len(rows), rows=rows)

    async def write(self, connection: Connection, plan: WaitPlan, now: datetime, epoch: int) -> None:
        rows = plan.rows
        columns = {
            "ids": texts(sorted({row.ref for row in rows})),
            "refs": texts(row.ref for row in rows),
            "keys": texts(row.key for row in rows),
            "payloads": texts(row.payload for row in rows),
        }
        await connection.execute(statement("clock/advance_actions"), {**columns, "epoch": epoch})
