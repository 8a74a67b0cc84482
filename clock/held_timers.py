"""Records that timers are held because their partition has not been read far enough.

The leading clock calls `record_pipeline_state` about once a second.

Guarantee: an episode is two events, however many timers are held: `pipeline-behind` after timers
have been held for five seconds, and `pipeline-caught-up` when none is held any more. The state of
the episode is a row, so a new leader continues it. Row and event commit together, under the epoch.

Why: a clock that holds its timers opens no alarms, exactly when operators expect them. A worker
that is seconds behind is ordinary, and not recorded.

On failure: nothing is recorded, and the next call tries again. `Deposed` if another clock leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import structlog

from clock.term import raise_if_deposed
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.instant import instant_text
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

_log = structlog.get_logger()
_REPORT_AFTER = timedelta(seconds=5)
MOST_COUNTED = 10_000


class HeldTimers(NamedTuple):
    """The held timers of one partition."""

    lane: str
    partition: int
    timers: int
    since: datetime
    """The deadline of the oldest."""
    now: datetime


async def read_held_timers(connection: Connection) -> list[HeldTimers]:
    rows = await fetch_all(connection, "clock/list_held_timers")
    return [HeldTimers(*row) for row in rows]


async def record_pipeline_state(connection: Connection, epoch: int) -> None:
    """Record that an episode has begun or ended since the last call, if one has."""
    held = await read_held_timers(connection)
    try:
        if not held:
            await _end_episode(connection, epoch)
        elif any(partition.now - partition.since >= _REPORT_AFTER for partition in held):
            await _begin_episode(connection, held, epoch)
    except psycopg.Error as error:
        raise_if_deposed(error)
        raise


async def _begin_episode(connection: Connection, held: Sequence[HeldTimers], epoch: int) -> None:
    since = min(partition.since for partition in held)
    async with connection.transaction():
        begun = await connection.execute(statement("clock/begin_episode"), {"since": since})
        if begun.rowcount == 0:
            return
        event = NewEvent(held[0].now, "derived", "pipeline-behind", _payload(held, since))
        await append_events(connection, [event], epoch=epoch)
    _log.warning("pipeline behind", timers=sum(partition.timers for partition in held), since=since)


async def _end_episode(connection: Connection, epoch: int) -> None:
    async with connection.transaction():
        row = await fetch_one(connection, "clock/end_episode")
        if row is None:
            return
        since, now = row
        event = NewEvent(now, "derived", "pipeline-caught-up", {"since": instant_text(since)})
        await append_events(connection, [event], epoch=epoch)
    _log.info("pipeline caught up", since=since)


def _payload(held: Sequence[HeldTimers], since: datetime) -> dict[str, Any]:
    timers = sum(partition.timers for partition in held)
    return {
        "timers": timers,
        "at_least": timers >= MOST_COUNTED,
        "since": instant_text(since),
        "partitions": [
            {
                "lane": partition.lane,
                "partition": partition.partition,
                "timers": partition.timers,
                "since": instant_text(partition.since),
            }
            for partition in held
        ],
    }
