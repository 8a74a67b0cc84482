"""One page of figures: what this process did since it started, and how the house is.

Guarantee: `metrics` always answers, within seconds. The house is read by one task on a session of its own, at most
once a second, and rests four times as long as it read, up to ten seconds: what is shown is never older than that and
the reading itself. One that takes too long is neither waited for nor repeated beside itself, so a Postgres that hangs
costs one session.

On failure: the page has `tocsin_database_up 0` and what the process knows of itself, and `problem` says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version

import psycopg
import structlog

from tocsin.core.db import Connection, connect
from tocsin.core.errors import TocsinError
from tocsin.core.metrics import Metrics, text
from tocsin.core.service import Service
from tocsin.core.settings import Settings
from tocsin.metrics.database_metrics import prepare, read_house

_log = structlog.get_logger()
_FRESH_S = 1.0
# Rests this many times as long as it read: at most a fifth of one session, while a reading takes less than 2.5 s.
_DUTY = 4
# No longer than this: how long Postgres was frozen says nothing about how long figures hold.
_LONGEST_REST_S = 10.0
_PATIENCE_S = 3.0
_OUTAGE = (TocsinError, psycopg.Error, OSError)


class Process:
    """What a process says of itself, whatever it runs."""

    def __init__(self) -> None:
        process = self.metrics = Metrics()
        self.info = process.gauge("tocsin_info", "1; which version runs", "version")
        self.up = process.gauge(
            "tocsin_service_up", "1 while the service's loops go round and have what they need", "service"
        )
        self.restarts = process.counter(
            "tocsin_service_restarts_total", "times that the service failed and was started again", "service"
        )
        self.database = process.gauge(
            "tocsin_database_up", "1 if the figures of the house on this page were read from postgres"
        )

    def take(self, services: Sequence[Service], database_up: bool) -> None:
        self.info.set(1, version("tocsin"))
        for service in services:
            self.up.set(service.problem is None, service.name)
            self.restarts.add(service.restarts, service.name)
        self.database.set(database_up)


class Page:
    def __init__(self, settings: Settings, services: Sequence[Service], groups: Sequence[Metrics]) -> None:
        self._settings = settings
        self._services = services
        self._groups = groups
        self._connection: Connection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._house: Metrics | None = None
        self._trouble = "postgres has not answered yet"
        self._fresh_until_s = 0.0

    async def metrics(self) -> str:
        house = await self._fresh_house()
        process = Process()
        process.take(self._services, house is not None)
        return text([process.metrics, *self._groups, *([] if house is None else [house])])

    async def problem(self) -> str | None:
        """What is wrong with this process, in one line; None if all is well."""
        for service in self._services:
            if service.problem is not None:
                return _first_line(f"{service.name}: {service.problem}")
        return self._trouble if await self._fresh_house() is None else None

    async def close(self) -> None:
        """What hangs is left to the end of the event loop."""
        reading = self._reading
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading}, timeout=1.0)
        await self._disconnect()

    async def _fresh_house(self) -> Metrics | None:
        """None if Postgres does not answer."""
        if self._reading is None and time.monotonic() >= self._fresh_until_s:
            self._reading = asyncio.create_task(self._read(), name="read the house")
        if self._reading is not None:
            _, late = await asyncio.wait({self._reading}, timeout=_PATIENCE_S)
            if late:
                self._trouble = f"postgres has not answered for {_PATIENCE_S:g} s"
                return None
        return self._house

    async def _read(self) -> None:
        began_s = time.monotonic()
        try:
            if self._connection is None:
                self._connection = await connect(self._settings, "metrics")
                await prepare(self._connection)
            began_s = time.monotonic()
            self._house = await read_house(self._connection)
        except Exception as error:
            if not isinstance(error, _OUTAGE):
                _log.exception("the house could not be read", error=error)
            self._house = None
            self._trouble = _first_line(str(error)) or type(error).__name__
            await self._disconnect()
        finally:
            rest_s = min(_DUTY * (time.monotonic() - began_s), _LONGEST_REST_S)
            self._fresh_until_s = time.monotonic() + max(_FRESH_S, rest_s)
            self._reading = None

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*_OUTAGE):
                await connection.close()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
