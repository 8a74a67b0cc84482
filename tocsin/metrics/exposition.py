"""The text that `/metrics` returns: metrics of this process and of the database.

Guarantee: `metrics` always returns within seconds. One task reads the database metrics on a session
of its own, at most once a second, and rests four times as long as it read, up to ten seconds: the
values are never older than the rest and the read itself. A read that takes too long is neither
waited for nor repeated in parallel, so a Postgres that hangs costs one session.

On failure: the text has `tocsin_database_up 0` and the metrics of the process, and `problem`
returns the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version

import psycopg
import structlog

from tocsin.core.db import Connection, connect_service
from tocsin.core.errors import TocsinError
from tocsin.core.metrics import Metrics, format_metrics, format_openmetrics
from tocsin.core.service import Service
from tocsin.core.settings import Settings
from tocsin.metrics.database_metrics import read_database_metrics, set_session_timeout

_log = structlog.get_logger()
_INTERVAL_S = 1.0
# Rests this many times as long as it read: at most a fifth of one session, while a read takes less
# than 2.5 s.
_REST_FACTOR = 4
# The limit of the rest: a read that was slow because Postgres was frozen must not delay the next
# for long.
_MAX_REST_S = 10.0
_WAIT_S = 3.0
_OUTAGE = (TocsinError, psycopg.Error, OSError)


class ProcessMetrics:
    """Metrics that every process has."""

    def __init__(self) -> None:
        process = self.metrics = Metrics()
        self.info = process.gauge("tocsin_info", "1, with the version as a label", "version")
        self.up = process.gauge(
            "tocsin_service_up", "1 while the loops of the service run and reach their servers", "service"
        )
        self.restarts = process.counter(
            "tocsin_service_restarts_total", "restarts of the service after a failure", "service"
        )
        self.database = process.gauge("tocsin_database_up", "1 if the database metrics could be read")

    def set(self, services: Sequence[Service], database_up: bool) -> None:
        self.info.set(1, version("tocsin"))
        for service in services:
            self.up.set(service.problem is None, service.name)
            self.restarts.add(service.restarts, service.name)
        self.database.set(database_up)


class Exposition:
    def __init__(self, settings: Settings, services: Sequence[Service], groups: Sequence[Metrics]) -> None:
        self._settings = settings
        self._services = services
        self._groups = groups
        # With a role per component, metrics are read with the role of the first service.
        self._session_name = f"{services[0].name} metrics" if services else "metrics"
        self._connection: Connection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._database: Metrics | None = None
        self._error = "postgres has not answered yet"
        self._fresh_until_s = 0.0

    async def metrics(self, *, openmetrics: bool = False) -> str:
        database = await self._read_if_due()
        process = ProcessMetrics()
        process.set(self._services, database is not None)
        groups = [process.metrics, *self._groups, *([] if database is None else [database])]
        return format_openmetrics(groups) if openmetrics else format_metrics(groups)

    @property
    def is_stuck(self) -> bool:
        """Whether only a new process helps."""
        return any(service.is_stuck for service in self._services)

    async def problem(self) -> str | None:
        """The problem of this process in one line; None if it is healthy."""
        for service in self._services:
            if service.problem is not None:
                return _first_line(f"{service.name}: {service.problem}")
        return self._error if await self._read_if_due() is None else None

    async def close(self) -> None:
        """Cancel a read in progress. One that hangs is left to the end of the event loop."""
        reading = self._reading
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading}, timeout=1.0)
        await self._disconnect()

    async def _read_if_due(self) -> Metrics | None:
        """The newest database metrics; None if Postgres does not answer."""
        if self._reading is None and time.monotonic() >= self._fresh_until_s:
            self._reading = asyncio.create_task(self._read(), name="read database metrics")
        if self._reading is not None:
            _, late = await asyncio.wait({self._reading}, timeout=_WAIT_S)
            if late:
                self._error = f"postgres has not answered for {_WAIT_S:g} s"
                return None
        return self._database

    async def _read(self) -> None:
        began_s = time.monotonic()
        try:
            if self._connection is None:
                self._connection = await connect_service(self._settings, self._session_name)
                await set_session_timeout(self._connection)
            began_s = time.monotonic()
            self._database = await read_database_metrics(self._connection)
        except Exception as error:
            if not isinstance(error, _OUTAGE):
                _log.exception("reading metrics failed", error=error)
            self._database = None
            self._error = _first_line(str(error)) or type(error).__name__
            await self._disconnect()
        finally:
            rest_s = min(_REST_FACTOR * (time.monotonic() - began_s), _MAX_REST_S)
            self._fresh_until_s = time.monotonic() + max(_INTERVAL_S, rest_s)
            self._reading = None

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*_OUTAGE):
                await connection.close()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
