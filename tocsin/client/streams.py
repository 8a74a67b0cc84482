"""What consumers need in NATS beside the record stream: made if it is missing, in one place.

Guarantee: `connected` opens what a service names and closes only what it opened. `made` changes nothing that
exists.

On failure: an answer that does not come is often a permission that is missing: NATS says so apart from the
request, and the sentence repeats what it said.
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
class Bus:
    client: Client
    namespace: str
    forbidden: list[str] = field(default_factory=list)
    """What NATS last said that this user may not do."""

    @property
    def stream(self) -> str:
        return self.namespace

    @property
    def prefix(self) -> str:
        return f"{self.namespace}.v1"

    def silent(self, what: str, error: BaseException) -> Unreachable:
        """The error to raise when JetStream does not answer."""
        if self.forbidden:
            return Unreachable(
                f"nats forbids {what} ({self.forbidden[0]})",
                remedy="give this user the permission, or let an operator run "
                "`tocsin.client.prepare` once if it is about making a stream",
            )
        return Unreachable(f"jetstream does not answer {what} ({error!r}): is it enabled in this account?")


@asynccontextmanager
async def connected(nats: str | Client | None, namespace: str | None, purpose: str) -> AsyncIterator[Bus]:
    """`nats`: a URL, a client of the service's own, or None for TOCSIN_NATS."""
    if nats is not None and not isinstance(nats, str | Client):
        raise InvalidInput(
            f"nats={nats!r}", remedy="give a URL such as nats://localhost:4222, or a connected client"
        )
    overrides = {"nats": nats if isinstance(nats, str) else None, "namespace": namespace}
    settings = read_settings(**{name: value for name, value in overrides.items() if value is not None})
    if isinstance(nats, Client):
        yield Bus(nats, settings.namespace)
        return
    forbidden: list[str] = []

    def note(error: Exception) -> None:
        if is_forbidden(error):
            forbidden[:] = [str(error)]
        _log.debug("nats: %s", error)

    async with open_bus(settings, purpose, on_error=note) as client:
        yield Bus(client, settings.namespace, forbidden)


async def made(client: Client, config: StreamConfig) -> None:
    js = client.jetstream(timeout=API_TIMEOUT_S)
    if await cancellable(find(js, str(config.name))) is not None:
        return
    try:
        await cancellable(js.add_stream(config))
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:  # another process made it between the two requests
            raise
