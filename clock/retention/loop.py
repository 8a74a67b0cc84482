"""Pruning by the leading clock, on its own session: soon after a takeover, then an hour after each run.

It works half of the time and rests the other half, so that a backlog of millions of rows leaves
half of the disk's time to others.

On failure: the error is logged, and pruning is tried again an hour later; the clock never stops for
it.
"""

from __future__ import annotations

import asyncio

import psycopg
import structlog

from clock.retention.prune import prune
from tocsin.core.db import open_service_session
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_FIRST_S = 30.0
_EVERY_S = 3600.0
# The pause after a chunk, as a multiple of the time that the chunk took.
_REST_FACTOR = 1.0


async def prune_hourly(settings: Settings, first_s: float = _FIRST_S, every_s: float = _EVERY_S) -> None:
    await asyncio.sleep(first_s)
    while True:
        await _prune_once(settings)
        await asyncio.sleep(every_s)


async def _prune_once(settings: Settings) -> None:
    try:
        async with open_service_session(settings, "clock retention") as connection:
            await prune(connection, settings, rest_factor=_REST_FACTOR)
    except (psycopg.Error, TocsinError) as error:
        _log.warning("pruning failed, trying again at the next run", error=error)
