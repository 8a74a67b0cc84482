"""A new tz database: pending ticks of the zones that changed are computed again, once, in one transaction.

Guarantees: the version the ticks were computed with is stored beside them, so a change is noticed at the next
takeover whatever happened in between; an occurrence that is done stays done (the next one lies after it, and its
identity is its wall time, which a new version does not change); a tick that does not move is not touched.
One-shots given as an instant, and `every`, do not depend on zones and stay.

On failure nothing moved and the version is not stored: the next takeover does it. Between the update of the tz data and
the takeover no clock runs with it, because a process keeps the data it started with.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from timers.identity import spread_of
from timers.recurrence import parse_spec
from timers.recurrence.zones import tz_version
from tocsin.core.db import Connection, statement

_log = structlog.get_logger()


async def follow_tz_data(connection: Connection, version: str | None = None) -> int:
    """How many ticks moved."""
    current = version or tz_version()
    stored = await (await connection.execute(statement("timers/read_tz_version"))).fetchone()
    if stored is not None and stored[0] == current:
        return 0
    async with connection.transaction():
        rows = await (await connection.execute(statement("timers/lock_zoned_ticks"))).fetchall()
        moved = [change for row in rows if (change := _moved(*row)) is not None]
        for ref, nominal_at, fire_at in moved:
            await connection.execute(
                statement("timers/move_tick"), {"ref": ref, "nominal_at": nominal_at, "fire_at": fire_at}
            )
        await connection.execute(statement("timers/write_tz_version"), {"version": current})
    if stored is not None:
        _log.info("tz data changed", before=stored[0], now=current, ticks_moved=len(moved))
    return len(moved)


def _moved(
    ref: str,
    nominal_at: datetime,
    done_until: datetime | None,
    armed_after: datetime,
    recurrence: dict[str, object],
    owner: str,
    name: str,
    spread: timedelta,
) -> tuple[str, datetime, datetime] | None:
    """The next occurrence after what is done, if the new data puts it elsewhere."""
    following = parse_spec(recurrence).next_after(done_until or armed_after)
    if following is None or following == nominal_at:
        return None
    return ref, following, following + spread_of(owner, name, spread)
