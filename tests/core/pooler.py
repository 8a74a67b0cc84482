"""A pooler that drops the options of a client's session, as PgBouncer does when it is told to ignore them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

_STARTUP = 196608  # protocol 3.0; other numbers ask for encryption or a newer minor version


@asynccontextmanager
async def dropping_pooler(server_socket: str) -> AsyncIterator[int]:
    """A pooler before the server at `server_socket`. Yields its port on 127.0.0.1."""

    async def serve(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(server_socket)
        with suppress(OSError, asyncio.IncompleteReadError):
            to_server.write(_without_options(await _startup(client, to_client)))
            await asyncio.gather(_copy(client, to_server), _copy(server, to_client))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


async def _startup(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> bytes:
    while True:
        (length,) = struct.unpack("!i", await client.readexactly(4))
        body = await client.readexactly(length - 4)
        if struct.unpack("!i", body[:4])[0] >> 16 == _STARTUP >> 16:
            return body
        to_client.write(b"N")  # no encryption


def _without_options(startup: bytes) -> bytes:
    words = startup[4:].rstrip(b"\0").split(b"\0")
    pairs = [pair for pair in zip(words[::2], words[1::2], strict=True) if pair[0] != b"options"]
    body = startup[:4] + b"".join(name + b"\0" + value + b"\0" for name, value in pairs) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def socket_path(host: str, port: str) -> str:
    return str(Path(host) / f".s.PGSQL.{port}")
