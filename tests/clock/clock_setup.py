"""Schedules, instants and drains that the tests of the clock share."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from clock.term import Round, Term
from tests.sql import all_rows
from timers.schedule_spec import ScheduleSpec
from timers.schedules import PutResult, find_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BEAT = ScheduleSpec("beat", {"every": "10s"})
ONCE = ScheduleSpec("once", {"at": "2026-03-02T08:00:10Z"})


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


async def put(connection: Connection, spec: ScheduleSpec = BEAT, **changes: Any) -> PutResult:
    return await put_schedule(connection, replace(spec, **changes), Actor("tester", "test", T0))


async def drain(term: Term, now: datetime, most: int = 100) -> list[Round]:
    """Batches until there is no more; fails if that never happens."""
    batches: list[Round] = []
    while not batches or batches[-1].more:
        assert len(batches) < most, f"no end after {most} batches: {batches[-1]}"
        batches.append(await term.run_once(now))
    return batches


async def schedule(connection: Connection, name: str = "beat") -> dict[str, Any]:
    row = await find_schedule(connection, "", name)
    assert row is not None
    return row


async def fired(connection: Connection, origin: str = "scheduled") -> list[tuple[str, datetime]]:
    rows = await all_rows(
        connection, "select schedule, ts from tocsin.event where origin = %s order by seq", (origin,)
    )
    return [(row["schedule"], row["ts"]) for row in rows]
