"""Chains the audit while this clock leads, on its own session.

Guarantee: a committed row of the audit is chained within seconds; from then on a change of it is
detected (`tocsin audit verify`). Before that the owner of the schema could change it unnoticed.

On failure: the error is logged, and the next round tries again; the clock never stops for it.
"""

from __future__ import annotations

import asyncio

import psycopg
import structlog

from tocsin.core.db import open_service_session, statement
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_EVERY_S = 5.0


async def chain_audit(settings: Settings, every_s: float = _EVERY_S) -> None:
    while True:
        try:
            async with open_service_session(settings, "clock audit") as connection:
                while True:
                    await connection.execute(statement("clock/seal_audit"))
                    await asyncio.sleep(every_s)
        except (psycopg.Error, TocsinError) as error:
            _log.warning("chaining the audit failed, trying again", error=error)
        await asyncio.sleep(every_s)
