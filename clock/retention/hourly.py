"""Pruning by the clock that leads: a while after it took over, then once an hour, on a session of its own.

It works half of the time and pauses for the other half, so that a backlog of millions of rows never has the disk to
itself. On failure it is said in the log and tried again an hour later; the clock never stops for it. A role that does
not own the schema cannot drop its partitions: then an operator runs `tocsin prune` with one that does.
"""

from __future__ import annotations

import asyncio

import psycopg
import structlog

from clock.retention.prune import prune
from tocsin.core.db import open_session
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_FIRST_S = 30.0
_EVERY_S = 3600.0
_REST = 1.0


async def keep_pruning(settings: Settings, first_s: float = _FIRST_S, every_s: float = _EVERY_S) -> None:
    await asyncio.sleep(first_s)
    while True:
        await _once(settings)
        await asyncio.sleep(every_s)


async def _once(settings: Settings) -> None:
    try:
        async with open_session(settings, "clock retention") as connection:
            await prune(connection, settings, rest=_REST)
    except (psycopg.Error, TocsinError) as error:
        _log.warning("pruning failed, trying again in an hour", error=error)
