"""Watchdogs: a series that was silent for too long is stale.

Guarantee: a watchdog that lapsed becomes one calculated datapoint at its deadline, and the current value is marked
stale, in one transaction (I4). Resets leave no trace: an arrival touches no timer, so a watchdog that comes due first
looks at the newest arrival and moves itself there. It never speaks beyond what was read: a deadline that its
partition is not complete up to is held, so our own outage is nobody's silence.

Why the current value is locked as well: a row that a worker is writing means that a datapoint is arriving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from clock.kinds import Bounds, Plan, remove_timers
from timers.identity import staleness_id
from tocsin.core.columns import numbers, plain_texts
from tocsin.core.db import Connection, statement
from tocsin.core.instant import instant_of, microseconds_of


class WatchdogRow(NamedTuple):
    """One row of clock/lock_due_watchdogs. Of a held row only the place is known."""

    ctid: str
    ref: str
    key: str
    fire_at: datetime
    nominal_at: datetime
    generation: int
    owner: str
    freshness: str
    deadline: datetime
    """The newest arrival and the tolerance. Not later than `nominal_at` means that it lapsed then."""
    place: str
    """Of the current value, which is locked: its ctid."""
    held: bool

    @property
    def name(self) -> str:
        return f"{self.key} of {self.owner!r}"


@dataclass(slots=True)
class WatchdogPlan(Plan):
    moved: tuple[list[str], list[int]] = field(default_factory=lambda: ([], []))
    consumed: list[str] = field(default_factory=list)
    stale: list[WatchdogRow] = field(default_factory=list)

    @property
    def first_rearmed_at(self) -> datetime | None:
        return instant_of(min(self.moved[1])) if self.moved[1] else None

    def due_s(self) -> list[float]:
        return [row.fire_at.timestamp() for row in self.stale]


class Watchdogs:
    @property
    def kind(self) -> str:
        return "watchdog"

    async def lock(self, connection: Connection, bounds: Bounds) -> list[WatchdogRow]:
        cursor = await connection.execute(statement("clock/lock_due_watchdogs"), bounds, binary=True)
        return [WatchdogRow(*row) for row in await cursor.fetchall()]

    async def settle(
        self, connection: Connection, rows: Sequence[WatchdogRow], now: datetime
    ) -> WatchdogPlan:
        plan = self.plan(rows)
        ctids, at = plan.moved
        if ctids:
            moved = {"ctids": plain_texts(ctids), "at": numbers(at)}
            await connection.execute(statement("clock/move_timers"), moved)
        await remove_timers(connection, plan.consumed)
        return plan

    def plan(self, rows: Sequence[WatchdogRow]) -> WatchdogPlan:
        plan = WatchdogPlan(considered=len(rows), settled=len(rows))
        for row in rows:
            if row.freshness == "fresh" and row.deadline > row.nominal_at:
                plan.moved[0].append(row.ctid)
                plan.moved[1].append(microseconds_of(row.deadline))
                continue
            plan.consumed.append(row.ctid)
            if row.freshness == "fresh":
                plan.stale.append(row)
        plan.fires = len(plan.stale)
        return plan

    async def write(self, connection: Connection, plan: WatchdogPlan, now: datetime, epoch: int) -> None:
        stale = plan.stale
        await connection.execute(
            statement("clock/append_staleness"),
            {
                "ids": plain_texts(
                    str(staleness_id("stale", row.owner, row.key, row.nominal_at)) for row in stale
                ),
                "places": plain_texts(row.place for row in stale),
                "deadlines": numbers(microseconds_of(row.nominal_at) for row in stale),
                "epoch": epoch,
            },
        )
