"""nats-py's client, with what the services need of it.

- Its waits cannot swallow a cancellation (`tocsin.core.cancellation`).
- A request to the JetStream API that the server forbids fails at once with `NatsForbidden`. NATS reports a
  missing permission apart from the request, which would wait for its timeout.
- It sends no credentials in clear text unless that is allowed: neither to a server that stops asking
  for TLS, nor to one that another server announces.
- In an account that imports the API, every JetStream context has the prefix of the import.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from tocsin.core.cancellation import cancellable

DEFAULT_API = "$JS.API"
_DENIED = re.compile(r'permissions violation for publish to "([^"]*)"')


class NatsForbidden(NatsError):
    """The user may not make this request. The message is that of the server."""


class ClearTextRefused(NatsError):
    """The server does not use TLS, and clear text is not allowed."""


class TocsinNatsClient(Client):
    def __init__(self, api: str = DEFAULT_API, clear_text: Callable[[str], bool] = lambda _: True) -> None:
        """`clear_text` decides whether a host may be reached without TLS."""
        super().__init__()
        self.api = api
        self._may_use_clear_text = clear_text
        self._asked: dict[str, set[asyncio.Future[Msg]]] = {}
        self._denied: dict[asyncio.Future[Msg], str] = {}

    def authenticate_with_key(self, public: str | None) -> None:
        """nats-py takes the name of a key only together with the seed, and reads that itself."""
        self._public_nkey = public

    def jetstream(self, **options: Any) -> JetStreamContext:
        return super().jetstream(**{"prefix": self.api, **options})

    async def request(self, subject: str, *arguments: Any, **options: Any) -> Msg:
        answer = super().request(subject, *arguments, **options)
        if not subject.startswith(self.api):
            return await cancellable(answer)
        asking = asyncio.ensure_future(answer)
        waiting = self._asked.setdefault(subject.lower(), set())
        waiting.add(asking)
        try:
            return await cancellable(asking)
        except asyncio.CancelledError:
            if asking in self._denied:
                raise NatsForbidden(self._denied[asking]) from None
            raise
        finally:
            waiting.discard(asking)
            if not waiting:
                self._asked.pop(subject.lower(), None)
            self._denied.pop(asking, None)

    def note_denial(self, error: Exception) -> None:
        """End the requests that the server forbids. For the callback that gets the errors."""
        found = _DENIED.search(str(error).lower())
        for asking in self._asked.get(found[1], ()) if found else ():
            self._denied[asking] = str(error)
            asking.cancel()

    async def flush(self, *arguments: Any, **options: Any) -> None:
        await cancellable(super().flush(*arguments, **options))

    async def close(self) -> None:
        await cancellable(super().close())

    def _connect_command(self) -> bytes:
        """What nats-py sends once the transport is as the server wants it: the credentials."""
        server = self._current_server
        host = (server.uri.hostname if server is not None else None) or ""
        if not self._server_info.get("tls_required") and not self._may_use_clear_text(host):
            raise ClearTextRefused(f"the server at {host!r} does not use tls")
        return super()._connect_command()

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Leave out announced servers that would be reached in clear text."""
        if not info.get("tls_required", self._server_info.get("tls_required")) and info.get("connect_urls"):
            urls = [url for url in info["connect_urls"] if self._may_use_clear_text(_host_of(url))]
            info = {**info, "connect_urls": urls}
        await super()._process_info(info, initial_connection)


def api_of(client: Client) -> str:
    """The prefix of the JetStream API. A service may bring a connection of its own."""
    return client.api if isinstance(client, TocsinNatsClient) else DEFAULT_API


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
