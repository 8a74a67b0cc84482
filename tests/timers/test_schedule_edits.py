"""An edit is checked on its own, without the anchor of the schedule that it replaces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def test_an_edit_with_bounds_before_the_old_anchor_is_accepted(
    connection: Connection,
) -> None:
    actor = Actor("tester", "test", T0)
    later = ScheduleSpec("beat", {"every": "10m", "anchor": T0 + 24 * HOUR})
    await put_schedule(connection, later, actor)
    sooner = ScheduleSpec("beat", {"every": "10m", "ends_at": T0 + HOUR})
    put = await put_schedule(connection, sooner, actor)
    assert (put.outcome, put.next_at) == ("changed", T0 + timedelta(minutes=10))
