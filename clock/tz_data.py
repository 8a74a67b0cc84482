"""Follows new tz data while the clock fires, on its own session.

The ticks of the affected schedules are moved by `timers.tz_update`. It is repeated until every tick
has been computed: a tick that another transaction holds is moved when that transaction has ended.

On failure: the error is logged and the update is tried again; the clock never stops for it.
"""

from __future__ import annotations

import asyncio

import psycopg
import structlog

from clock.time_source import steady_s
from timers.tz_update import TzUpdate
from tocsin.core.db import open_service_session
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import DEPOSED

_log = structlog.get_logger()
_RETRY_S = 1.0


async def follow_tz_data(settings: Settings, epoch: int) -> None:
    update = TzUpdate(epoch)
    while True:
        began_s = steady_s()
        try:
            async with open_service_session(settings, "clock tz data") as connection:
                if await update.update_ticks(connection):
                    return
        except psycopg.Error as error:
            if error.sqlstate == DEPOSED:
                return
            _log.warning("tz data not applied, trying again", error=error)
        except TocsinError as error:
            _log.warning("tz data not applied, trying again", error=error)
        # At most five percent of the time, however many schedules there are.
        await asyncio.sleep(max(_RETRY_S, 20 * (steady_s() - began_s)))
