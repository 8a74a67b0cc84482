"""`/metrics` and `/healthz` over HTTP: as much of a web server as two pages need.

Guarantee: whatever a client sends, or does not send, costs a bounded amount of memory and time and reaches nothing
but the page. One request per connection, 8 kB of it, ten seconds for all, 32 connections at once.

Why no framework: none of what one brings is wanted here, and everything it can do would have to be switched off.

On failure: an address that cannot be listened on is `Refused` at the start, with the setting's value.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple

import structlog

from tocsin.core.errors import Refused
from tocsin.core.listen_address import ListenAddress
from tocsin.core.metrics import CONTENT_TYPE
from tocsin.metrics.exposition import Page

_log = structlog.get_logger()
_LONGEST_REQUEST = 8192
_WITHIN_S = 10.0
_AT_ONCE = 32
_TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    status: HTTPStatus
    body: str
    type: str = _TEXT

    def encoded(self, *, with_body: bool) -> bytes:
        body = self.body.encode()
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.type}\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + (body if with_body else b"")


class Server:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._connections) < _AT_ONCE:
                self._connections.add(task)
                async with asyncio.timeout(_WITHIN_S):
                    await self._exchange(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # It went away, or was too slow: nobody is left to tell, and closing would wait until it has read.
            writer.transport.abort()
        except Exception as error:
            _log.exception("metrics page failed", error=error)
        finally:
            self._connections.discard(task)
            writer.close()

    async def end(self) -> None:
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(set(self._connections), timeout=1.0)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        except (asyncio.LimitOverrunError, ValueError):
            method, answer = "GET", Answer(HTTPStatus.BAD_REQUEST, "this is no request: ask GET /metrics\n")
        else:
            answer = await self._answer(method, target.partition("?")[0])
        # What is not sent within the time is not kept for a client that does not read.
        writer.transport.set_write_buffer_limits(0)
        writer.write(answer.encoded(with_body=method != "HEAD"))
        await writer.drain()

    async def _answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered here\n")
        if path == "/metrics":
            return Answer(HTTPStatus.OK, await self._page.metrics(), CONTENT_TYPE)
        if path == "/healthz":
            problem = await self._page.problem()
            if problem is None:
                return Answer(HTTPStatus.OK, "ok\n")
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n")
        return Answer(HTTPStatus.NOT_FOUND, "there are /metrics and /healthz\n")


@asynccontextmanager
async def serving(address: ListenAddress, page: Page) -> AsyncIterator[None]:
    """The page for the length of the block."""
    server = Server(page)
    try:
        listening = await asyncio.start_server(
            server.serve, address.host, address.port, limit=_LONGEST_REQUEST
        )
    except OSError as error:
        # Of an address that nobody has, the number says nothing and the text does.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
        raise Refused(
            f"TOCSIN_METRICS={address.text!r} cannot be listened on ({reason.lower()})",
            remedy="stop what uses it, or choose another address; two services on one host need a port each",
        ) from None
    port = listening.sockets[0].getsockname()[1]
    _log.info("metrics served", address=f"{address.shown_host}:{port}")
    try:
        yield
    finally:
        listening.close()
        await server.end()
        await page.close()
