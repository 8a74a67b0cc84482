"""A schedule named `job`, fired in virtual time, and its explanation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from clock.explain.explanation import Explanation
from clock.explain.records import explain_schedule
from clock.term import Term
from tests.clock.clock_setup import T0, drain, schedule
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

DAILY = {"cron": "0 8 * * *", "tz": "America/New_York"}
# 08:00 in New York, which is at -05:00 on this day.
DUE = datetime(2026, 3, 2, 13, 0, tzinfo=UTC)
DAY = timedelta(days=1)


async def put(connection: Connection, recurrence: dict[str, str], now: datetime = T0, **more: Any) -> None:
    actor = await acting_at(connection, "ann", now)
    await put_schedule(connection, ScheduleSpec("job", recurrence, **more), actor)


async def acting_at(connection: Connection, who: str, now: datetime) -> Actor:
    """A person who acts at `now`; the server takes the time of the audit from the session."""
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))
    return Actor(who, "cli", now)


async def fire(term: Term, connection: Connection, now: datetime, after: timedelta = timedelta(0)) -> None:
    """Fire the timers that are due at `now`. Their events are recorded `after` that."""
    await connection.execute("select set_config('tocsin.now', %s, false)", ((now + after).isoformat(),))
    await drain(term, now)


async def explain_job(connection: Connection, now: datetime, at: datetime | None = None) -> Explanation:
    return await explain_schedule(connection, "", "job", now, at)


async def timer_of(connection: Connection) -> str:
    return f"schedule-tick/{(await schedule(connection, 'job'))['id']}"
