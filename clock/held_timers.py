"""Whether verdicts wait because what arrived has not been read yet, and saying so once.

Guarantee: an episode is two events: `pipeline-behind` once verdicts have waited for five seconds, `pipeline-caught-up`
when none waits any more, however many series there are, whoever leads: the row remembers. Row and event commit
together, under the epoch.

Why: a clock that holds its verdicts is silent exactly when people look for them. A worker that is seconds behind
is ordinary, and said nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import structlog

from clock.term import raise_if_deposed
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

_log = structlog.get_logger()
_WORTH_SAYING = timedelta(seconds=5)
MOST_COUNTED = 10_000


class Held(NamedTuple):
    """Verdicts that wait for one partition."""

    lane: str
    partition: int
    timers: int
    since: datetime
    """The instant of the oldest."""
    now: datetime


async def read_held(connection: Connection) -> list[Held]:
    rows = await fetch_all(connection, "clock/list_held")
    return [Held(*row) for row in rows]


async def follow_pipeline(connection: Connection, epoch: int) -> None:
    """Say what began or ended since the last time."""
    held = await read_held(connection)
    try:
        if not held:
            await _end(connection, epoch)
        elif any(one.now - one.since >= _WORTH_SAYING for one in held):
            await _begin(connection, held, epoch)
    except psycopg.Error as error:
        raise_if_deposed(error)
        raise


async def _begin(connection: Connection, held: Sequence[Held], epoch: int) -> None:
    since = min(one.since for one in held)
    async with connection.transaction():
        begun = await connection.execute(statement("clock/begin_episode"), {"since": since})
        if begun.rowcount == 0:
            return
        event = NewEvent(held[0].now, "derived", "pipeline-behind", _payload(held, since))
        await append_events(connection, [event], epoch=epoch)
    _log.warning("pipeline behind", timers=sum(one.timers for one in held), since=since)


async def _end(connection: Connection, epoch: int) -> None:
    async with connection.transaction():
        row = await fetch_one(connection, "clock/end_episode")
        if row is None:
            return
        since, now = row
        event = NewEvent(now, "derived", "pipeline-caught-up", {"since": since.isoformat()})
        await append_events(connection, [event], epoch=epoch)
    _log.info("pipeline caught up", since=since)


def _payload(held: Sequence[Held], since: datetime) -> dict[str, Any]:
    timers = sum(one.timers for one in held)
    return {
        "timers": timers,
        "at_least": timers >= MOST_COUNTED,
        "since": since.isoformat(),
        "partitions": [
            {
                "lane": one.lane,
                "partition": one.partition,
                "timers": one.timers,
                "since": one.since.isoformat(),
            }
            for one in held
        ],
    }
