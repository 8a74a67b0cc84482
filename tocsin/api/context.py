"""The parts of a running API that its handlers share: settings, sessions of Postgres, NATS, the stop.

On failure: a Postgres that does not answer within `_SESSION_WAIT_S` raises an outage, which becomes
503. NATS is connected at its first use, and again after a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from nats.aio.client import Client
from nats.errors import Error as NatsError
from starlette.requests import HTTPConnection

from tocsin.api.access.known_tokens import KnownTokens
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, SessionPool, service_pool
from tocsin.core.settings import Settings

SESSIONS = 10
_SESSION_WAIT_S = 5.0
_STATEMENT_S = 20.0


@dataclass
class ApiContext:
    settings: Settings
    sessions: SessionPool
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the service begins to stop: a handler that streams ends its answer then."""
    tokens: KnownTokens = field(default_factory=KnownTokens)
    parts: dict[str, Any] = field(default_factory=dict)
    """What the lifespans of route groups share with their handlers, by the name of the group."""
    _bus: Client | None = None
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """A session in autocommit mode, for the length of the block."""
        async with self.sessions.connection(timeout=_SESSION_WAIT_S) as connection:
            yield connection

    async def bus(self) -> Client:
        """The connection to NATS. Raises `Unreachable`."""
        async with self._connecting:
            if self._bus is None or self._bus.is_closed:
                self._bus = await connect_bus(self.settings, "api")
            return self._bus

    async def close(self) -> None:
        if self._bus is not None:
            with suppress(NatsError, OSError):  # the server may be gone
                await self._bus.close()


@asynccontextmanager
async def open_context(settings: Settings) -> AsyncIterator[ApiContext]:
    """The shared parts for the length of the block. Waits for no server."""
    async with service_pool(settings, "api", size=SESSIONS, statement_timeout_s=_STATEMENT_S) as sessions:
        context = ApiContext(settings, sessions)
        try:
            yield context
        finally:
            await context.close()


def context_of(connection: HTTPConnection) -> ApiContext:
    """The shared parts, in a handler."""
    return cast(ApiContext, connection.app.state.context)
