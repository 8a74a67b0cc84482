"""Runbook waits: a step that waits is due again, and a group that gathered begins.

Guarantee: the timer is consumed and its step appended as `due` in one transaction, and only if the action still waits
for it: one that was cancelled, has ended or went on meanwhile takes nothing from the fire. What the step is, and what
comes after it, is not known here: workers perform it.

Keys: the step's number (a wait, a back-off, a deadline), `group` (a gathering action begins), and `<step>/report` (what
came of a dispatched message, armed by `tocsin.report`). The payload has the step, and what is merged into its entry
of `action.active`: `attempt`, `lapsed` or `report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from clock.kinds import Bounds, Plan, remove_timers
from tocsin.core.columns import texts
from tocsin.core.db import Connection, statement


class WaitRow(NamedTuple):
    """One row of clock/lock_due_waits; `ref` is the action's id."""

    ctid: str
    ref: str
    key: str
    fire_at: datetime
    generation: int
    payload: str
    held: bool

    @property
    def name(self) -> str:
        return f"action {self.ref}"


@dataclass(slots=True)
class WaitPlan(Plan):
    rows: Sequence[WaitRow] = field(default_factory=list)

    def due_s(self) -> list[float]:
        return [row.fire_at.timestamp() for row in self.rows]


class RunbookWaits:
    @property
    def kind(self) -> str:
        return "runbook-wait"

    async def lock(self, connection: Connection, bounds: Bounds) -> list[WaitRow]:
        cursor = await connection.execute(statement("clock/lock_due_waits"), bounds, binary=True)
        return [WaitRow(*row) for row in await cursor.fetchall()]

    async def settle(self, connection: Connection, rows: Sequence[WaitRow], now: datetime) -> WaitPlan:
        await remove_timers(connection, [row.ctid for row in rows])
        return WaitPlan(len(rows), len(rows), len(rows), rows=rows)

    async def write(self, connection: Connection, plan: WaitPlan, now: datetime, epoch: int) -> None:
        rows = plan.rows
        columns = {
            "ids": texts(sorted({row.ref for row in rows})),
            "refs": texts(row.ref for row in rows),
            "keys": texts(row.key for row in rows),
            "payloads": texts(row.payload for row in rows),
        }
        await connection.execute(statement("clock/advance_actions"), {**columns, "epoch": epoch})
