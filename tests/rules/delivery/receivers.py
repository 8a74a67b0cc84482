"""A real HTTP server with a scripted behaviour: it answers, stalls, redirects, resets or never stops."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    behaviour: Behaviour | None = None
    """A test may replace it while the server runs. None: it responds with 200."""

    accepted: list[Any] = field(default_factory=list)
    """The bodies of the requests that were answered without a fault, in order."""

    @property
    def only(self) -> Received:
        (one,) = self.requests
        return one


def respond(status: int = 200, body: bytes = b"ok", **headers: str) -> Behaviour:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    behave.is_success = status < 300  # type: ignore[attr-defined]
    return behave


def respond_raw(raw: bytes) -> Behaviour:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return behave


async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Until the other side gives up."""
    await reader.read()


async def reset_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One for each request; the last one stays."""
    left = list(behaviours)

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(reader, writer)

    return behave


def endless(head: bytes) -> Behaviour:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(b"x" * 65_536)
            await writer.drain()

    return behave


def stall_after(head: bytes) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()
        await reader.read()

    return behave


@asynccontextmanager
async def receiver(
    behave: Behaviour | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    greeting: bytes = b"",
) -> AsyncIterator[Receiver]:
    state = Receiver(behaviour=behave)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        state.connections += 1
        try:
            writer.write(greeting)
            state.requests.append(await _request(reader))
            is_accepted = state.behaviour is None or getattr(state.behaviour, "is_success", False)
            await (state.behaviour or respond())(reader, writer)
            if is_accepted:
                state.accepted.append(state.requests[-1].json)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, host, port, ssl=tls, limit=2**24)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)
