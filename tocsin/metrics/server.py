"""`/metrics`, `/healthz` and `/livez` over HTTP, with a minimal server.

Guarantee: whatever a client sends, or does not send, costs a bounded amount of memory and time and
reaches nothing but the exposition. One request per connection, at most 8 kB, two seconds to send it,
ten seconds in all, 32 connections at a time. If all are taken, a new one replaces the oldest that has
sent no request, and without such a one the oldest of the address with the most connections.

`/livez` fails only if a new process would help: not while the service waits for Postgres or NATS. With a
token, `/metrics` is for clients that send it. `/healthz` and `/livez` return ok or not to every client. The
reason is only for clients that send the token, or for those on this host if there is none: it can
have names of servers and texts of errors.

Why no framework: three paths need none of its features, and every one of them would have to be turned
off.

On failure: an address that cannot be listened on raises `Refused` at the start, with the value of
the setting.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple

import structlog

from tocsin.core.errors import Refused
from tocsin.core.listen_address import ListenAddress
from tocsin.core.metrics import CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE
from tocsin.metrics.exposition import Exposition

_log = structlog.get_logger()
_MAX_REQUEST_BYTES = 8192
_TIMEOUT_S = 10.0
_REQUEST_TIMEOUT_S = 2.0
_MAX_CONNECTIONS = 32
_TEXT = "text/plain; charset=utf-8"


class Response(NamedTuple):
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


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    openmetrics: bool = False

    @classmethod
    def parse(cls, head: bytes) -> Request:
        """`ValueError` if it is no HTTP request."""
        first, *lines = head.decode("latin-1").split("\r\n")
        first.encode("ascii")
        method, target, _ = first.split(" ")
        fields = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        return cls(method, target.partition("?")[0], headers, wants_openmetrics(head))


class MetricsServer:
    def __init__(self, exposition: Exposition, token: str = "") -> None:
        """`token` is the bearer token that clients must send; empty if there is none."""
        self._exposition = exposition
        self._token = token
        self._connections: dict[asyncio.Task[None], str] = {}
        """The address of the client of each connection, the oldest first."""
        self._without_request: dict[asyncio.Task[None], None] = {}
        """Connections without a request, the oldest first."""
        self._replaced: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            self._free_a_place()
            if len(self._connections) < _MAX_CONNECTIONS:
                self._connections[task] = _address(writer)
                self._without_request[task] = None
                async with asyncio.timeout(_TIMEOUT_S):
                    await self._exchange(reader, writer)
        except asyncio.CancelledError:
            # Another connection needed the place, or the service stops.
            writer.transport.abort()
            if task not in self._replaced:
                raise
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # The client went away or was too slow. Closing would wait until it has read the
            # response.
            writer.transport.abort()
        except Exception as error:
            _log.exception("metrics request failed", error=error)
        finally:
            self._connections.pop(task, None)
            self._without_request.pop(task, None)
            self._replaced.discard(task)
            writer.close()

    def _free_a_place(self) -> None:
        """Close a connection if all places are taken.

        A client that connects and sends nothing, or reads no answer, could otherwise keep Prometheus
        and probes out.
        """
        if len(self._connections) < _MAX_CONNECTIONS:
            return
        oldest = next(iter(self._without_request), None)
        if oldest is None:
            busiest, _ = Counter(self._connections.values()).most_common(1)[0]
            oldest = next(task for task, address in self._connections.items() if address == busiest)
        self._without_request.pop(oldest, None)
        self._connections.pop(oldest, None)
        self._replaced.add(oldest)
        oldest.cancel()

    async def close(self) -> None:
        self._replaced.update(self._connections)  # or asyncio logs each of them as an error
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(set(self._connections), timeout=1.0)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            self._without_request.pop(asyncio.current_task(), None)  # type: ignore[arg-type]
            request = Request.parse(head)
        except (asyncio.LimitOverrunError, ValueError):
            request = Request("GET", "", {})
            response = Response(HTTPStatus.BAD_REQUEST, "not an HTTP request: send GET /metrics\n")
        else:
            response = await self._respond(request, _address(writer))
        # No buffering: a client that does not read must not hold memory beyond the time limit.
        writer.transport.set_write_buffer_limits(0)
        writer.write(response.encoded(with_body=request.method != "HEAD"))
        await writer.drain()

    async def _respond(self, request: Request, address: str) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n")
        has_token = self._has_token(request)
        if request.path == "/metrics":
            if self._token and not has_token:
                return Response(HTTPStatus.UNAUTHORIZED, "send the token of TOCSIN_METRICS_TOKEN\n")
            text = await self._exposition.metrics(openmetrics=request.openmetrics)
            kind = OPENMETRICS_CONTENT_TYPE if request.openmetrics else CONTENT_TYPE
            return Response(HTTPStatus.OK, text, kind)
        if request.path == "/livez":
            is_stuck = self._exposition.is_stuck
            status = HTTPStatus.SERVICE_UNAVAILABLE if is_stuck else HTTPStatus.OK
            return Response(status, "a loop hangs: restart the process\n" if is_stuck else "ok\n")
        if request.path == "/healthz":
            problem = await self._exposition.problem()
            if problem is None:
                return Response(HTTPStatus.OK, "ok\n")
            is_trusted = has_token if self._token else _is_on_this_host(address)
            shown = problem if is_trusted else "not healthy: its log and `tocsin doctor` have the reason"
            return Response(HTTPStatus.SERVICE_UNAVAILABLE, f"{shown}\n")
        return Response(HTTPStatus.NOT_FOUND, "not found: use /metrics, /healthz or /livez\n")

    def _has_token(self, request: Request) -> bool:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token.encode())


def _address(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _is_on_this_host(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def wants_openmetrics(head: bytes) -> bool:
    """Whether the Accept header prefers OpenMetrics 1.0.0 to the text format.

    Of equal weights the text format is chosen, because every client reads it.
    """
    accepted = b",".join(
        value
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
        if name.strip().lower() == b"accept"
    )
    weights = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for media_range in accepted.decode("latin-1").lower().split(","):
        kind, *parameters = [part.strip() for part in media_range.split(";")]
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        if kind in weights and values.get("version", "1.0.0") in ("1.0.0", "0.0.4"):
            weights[kind] = max(weights[kind], _weight(values.get("q", "1")))
    return weights["application/openmetrics-text"] > weights["text/plain"]


def _weight(text: str) -> float:
    return float(text) if re.fullmatch(r"[01](\.[0-9]{0,3})?", text) else 0.0


@asynccontextmanager
async def serve_metrics(
    address: ListenAddress, exposition: Exposition, token: str = ""
) -> AsyncIterator[None]:
    """Serve the exposition for the length of the block."""
    server = MetricsServer(exposition, token)
    try:
        listening = await asyncio.start_server(
            server.serve, address.host, address.port, limit=_MAX_REQUEST_BYTES
        )
    except OSError as error:
        # The number of a failed name look-up has no text in `os`; the error itself has.
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
        await server.close()
        await exposition.close()
