"""The connection of a consumer or replay, and the streams for dead letters and marks.

Guarantee: `open_record_bus` closes only a connection that it opened. `create_missing` changes no
stream that exists.

On failure: a missing answer often means a missing permission. NATS reports that apart from the
request, and `no_answer` repeats the report.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import BadRequestError

from tocsin.core.bus import is_forbidden, open_bus
from tocsin.core.cancellation import cancellable
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.settings import read_settings
from tocsin.core.streams import find

_log = logging.getLogger("tocsin.client")
API_TIMEOUT_S = 5.0
_NAME_IN_USE = 10058


@dataclass
class RecordBus:
    client: Client
    namespace: str
    forbidden: list[str] = field(default_factory=list)
    """The last permission error that NATS reported."""

    @property
    def stream(self) -> str:
        return self.namespace

    @property
    def prefix(self) -> str:
        return f"{self.namespace}.v1"

    def no_answer(self, request: str, error: BaseException) -> Unreachable:
        """The error to raise when JetStream does not answer."""
        if self.forbidden:
            return Unreachable(
                f"nats forbids {request} ({self.forbidden[0]})",
                remedy="give this user the permission, or, if a stream has to be created, let an operator run "
                "`tocsin.client.prepare` once",
            )
        return Unreachable(
            f"jetstream does not answer {request} ({error!r})",
            remedy="check that it is enabled in this account",
        )


@asynccontextmanager
async def open_record_bus(
    nats: str | Client | None, namespace: str | None, purpose: str
) -> AsyncIterator[RecordBus]:
    """`nats` is a URL, a connected client of the service, or None for TOCSIN_NATS."""
    if nats is not None and not isinstance(nats, str | Client):
        raise InvalidInput(
            f"nats={nats!r}", remedy="give a URL such as nats://localhost:4222, or a connected client"
        )
    overrides = {"nats": nats if isinstance(nats, str) else None, "namespace": namespace}
    settings = read_settings(**{name: value for name, value in overrides.items() if value is not None})
    if isinstance(nats, Client):
        yield RecordBus(nats, settings.namespace)
        return
    forbidden: list[str] = []

    def note_error(error: Exception) -> None:
        if is_forbidden(error):
            forbidden[:] = [str(error)]
        _log.debug("nats: %s", error)

    async with open_bus(settings, purpose, on_error=note_error) as client:
        yield RecordBus(client, settings.namespace, forbidden)


async def create_missing(client: Client, config: StreamConfig) -> None:
    js = client.jetstream(timeout=API_TIMEOUT_S)
    if await cancellable(find(js, str(config.name))) is not None:
        return
    try:
        await cancellable(js.add_stream(config))
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:  # another process created it between the two requests
            raise
