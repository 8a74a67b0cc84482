"""Watchdogs: a series whose deadline passed without a datapoint becomes stale.

Guarantee: a watchdog whose deadline passed becomes one calculated datapoint at that deadline, and
the current value is marked stale, in one transaction (I4). An arrival touches no timer: a watchdog
that comes due first reads the newest arrival and moves itself to the new deadline. It never fires
beyond the watermark: until its partition has been read up to the deadline, it is held, so an outage
of the workers makes no series stale.

Why the current value is locked as well: if a worker is writing that row, a datapoint is arriving.
Such a watchdog is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from clock.kinds import FiringPlan, ScanBounds, remove_timers
from timers.identity import staleness_id
from tocsin.core.columns import numbers, plain_texts
from tocsin.core.db import Connection, statement
from tocsin.core.instant import instant_of, microseconds_of


class WatchdogRow(NamedTuple):
    """One row of clock/lock_due_watchdogs. A held row has only its key and time."""

    ctid: str
    ref: str
    key: str
    fire_at: datetime
    nominal_at: datetime
    generation: int
    owner: str
    freshness: str
    deadline: datetime
    """The newest arrival plus the tolerance. If it is not after `nominal_at`, the series is stale
    since then."""
    value_ctid: str
    """The row of the current value, which is locked."""
    held: bool

    @property
    def name(self) -> str:
        return f"{self.key} of {self.owner!r}"


@dataclass(slots=True)
class WatchdogPlan(FiringPlan):
    moved: tuple[list[str], list[int]] = field(default_factory=lambda: ([], []))
    consumed: list[str] = field(default_factory=list)
    stale: list[WatchdogRow] = field(default_factory=list)

    @property
    def first_rearmed_at(self) -> datetime | None:
        return instant_of(min(self.moved[1])) if self.moved[1] else None

    @property
    def due_times_s(self) -> list[float]:
        return [row.fire_at.timestamp() for row in self.stale]


class Watchdogs:
    """The kind `watchdog`: marks a series as stale, or moves itself to the newer deadline."""

    @property
    def kind(self) -> str:
        return "watchdog"

    async def lock(self, connection: Connection, bounds: ScanBounds) -> list[WatchdogRow]:
        cursor = await connection.execute(statement("clock/lock_due_watchdogs"), bounds, binary=True)
        return [WatchdogRow(*row) for row in await cursor.fetchall()]

    async def plan(self, connection: Connection, rows: Sequence[WatchdogRow], now: datetime) -> WatchdogPlan:
        plan = self.decide(rows)
        ctids, at = plan.moved
        if ctids:
            moved = {"ctids": plain_texts(ctids), "at": numbers(at)}
            await connection.execute(statement("clock/move_timers"), moved)
        await remove_timers(connection, plan.consumed)
        return plan

    def decide(self, rows: Sequence[WatchdogRow]) -> WatchdogPlan:
        plan = WatchdogPlan(considered=len(rows), processed=len(rows))
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
                "value_ctids": plain_texts(row.value_ctid for row in stale),
                "deadlines": numbers(microseconds_of(row.nominal_at) for row in stale),
                "epoch": epoch,
            },
        )
