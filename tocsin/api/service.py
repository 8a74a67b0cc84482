"""The service that runs the API: uvicorn inside our own loop, with our sockets and our stop.

Guarantees: the address is taken before the service starts, so one in use is an error at once. While
Postgres or NATS do not answer, the API answers 503 and `/readyz` is not ready; it does not restart. When
it stops, it accepts no more connections, ends streams (`ApiContext.stopping`), and finishes the requests
under way, for at most `DRAIN_S`.

Why the stop is not cancelled again: `Service.stop` repeats its cancellation after a while, which would
cut the requests that are being finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from ipaddress import ip_address

import structlog
import uvicorn

from tocsin.api.app import create_app
from tocsin.api.context import ApiContext, open_context
from tocsin.api.protocol import BoundedProtocol
from tocsin.api.route_group import RouteGroup
from tocsin.api.routes import GROUPS
from tocsin.core.errors import Refused
from tocsin.core.listen_address import ListenAddress
from tocsin.core.service import beat
from tocsin.core.settings import Settings

_log = structlog.get_logger()
DRAIN_S = 10.0
_BACKLOG = 1024
_BEAT_S = 1.0
_KEEP_ALIVE_S = 15


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and without its wake-ups ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._exit = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        while not self._exit.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._exit.wait()

    def exit(self) -> None:
        self.should_exit = True
        self._exit.set()


class Api:
    """`run` is the coroutine of the service; `url` is known before it runs."""

    def __init__(
        self, settings: Settings, listening: socket.socket, groups: Sequence[RouteGroup] = GROUPS
    ) -> None:
        self._settings = settings
        self._listening = listening
        self._groups = groups

    @property
    def url(self) -> str:
        host, port = self._listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._settings.api_tls_cert else 'http'}://{shown}:{port}"

    async def run(self) -> None:
        async with open_context(self._settings) as context, _lifespans(context, self._groups):
            server = _Server(self._config(context))
            # The server closes its socket at the end, and a restart of the service needs ours.
            serving = asyncio.create_task(server.serve(sockets=[self._listening.dup()]), name="http")
            _log.info("api served", address=self.url)
            try:
                while not serving.done():
                    beat("http", rest_s=_BEAT_S)
                    await asyncio.wait({serving}, timeout=_BEAT_S)
            except asyncio.CancelledError:
                # Or new connections would wait for an answer until the process ends.
                self._listening.close()
                raise
            finally:
                context.stopping.set()
                server.exit()
                await _finish(serving)

    def _config(self, context: ApiContext) -> uvicorn.Config:
        limited = type(
            "LimitedProtocol", (BoundedProtocol,), {"max_connections": self._settings.api_connections}
        )
        return uvicorn.Config(
            create_app(context, self._groups),
            http=limited,
            # The newest implementation for the present versions of websockets.
            ws="websockets-sansio",
            ws_max_size=1_000_000,
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=int(DRAIN_S),
            ssl_certfile=self._settings.api_tls_cert or None,
            ssl_keyfile=self._settings.api_tls_key or None,
        )


async def _finish(serving: asyncio.Task[None]) -> None:
    """Wait for the end of the server, which is bounded, also if cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not serving.done():
        try:
            await asyncio.wait({serving})
        except asyncio.CancelledError as error:
            cancelled = error
    serving.result()
    if cancelled is not None:
        raise cancelled


@asynccontextmanager
async def _lifespans(context: ApiContext, groups: Sequence[RouteGroup]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for group in groups:
            if group.lifespan is not None:
                context.parts[group.name] = await stack.enter_async_context(group.lifespan(context))
        yield


@contextmanager
def listen(settings: Settings, address: ListenAddress | None = None) -> Iterator[socket.socket]:
    """The socket of the API for the length of the block. Raises `Refused`."""
    address = address or ListenAddress.parse(settings.api)
    refuse_clear_text(settings, address)
    try:
        opened = _open(address)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
        raise Refused(
            f"TOCSIN_API={address.text!r} cannot be listened on ({reason.lower()})",
            remedy="stop what uses it, or choose another address",
        ) from None
    with opened:
        yield opened


def _open(address: ListenAddress) -> socket.socket:
    family, kind, _, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # asyncio sets TCP_NODELAY only for a socket that names its protocol: 608 requests/s over one
    # connection instead of 22.
    opened = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(where)
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


def refuse_clear_text(settings: Settings, address: ListenAddress) -> None:
    """Refuse plain HTTP where others can read it, because tokens would be readable too."""
    if settings.api_tls_cert or settings.api_plain or _is_loopback(address.host):
        return
    raise Refused(
        f"TOCSIN_API={address.text!r} is not loopback, and tokens would be sent in clear text",
        remedy="set TOCSIN_API_TLS_CERT and TOCSIN_API_TLS_KEY, or TOCSIN_API_PLAIN=true if a proxy in front "
        "ends TLS",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
