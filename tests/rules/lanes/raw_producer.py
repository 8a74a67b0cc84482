"""A producer that speaks the protocol of NATS by itself, and so sends what no client library would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import unquote, urlsplit

from tocsin.core.settings import Settings

_OPTIONS = {
    "verbose": False,
    "pedantic": False,
    "headers": True,
    "lang": "raw",
    "version": "0",
    "protocol": 1,
}


class RawProducer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.errors: list[str] = []
        """What the server rejected."""

    async def publish(self, subject: str, body: bytes, headers: bytes = b"") -> None:
        """Send a message with these lines as its headers, and wait until the server has read it."""
        block = b"NATS/1.0\r\n" + headers + b"\r\n"
        size = len(block) + len(body)
        self._writer.write(
            f"HPUB {subject} {len(block)} {size}\r\n".encode() + block + body + b"\r\nPING\r\n"
        )
        await self._writer.drain()
        while (line := await self._reader.readline()) != b"PONG\r\n":
            if not line:
                raise ConnectionError("the server closed the connection")
            self.errors.append(line.decode(errors="replace").strip())

    async def send_bytes(self, raw: bytes) -> None:
        """Send bytes that need not be the protocol, and wait until the server answers or closes."""
        self._writer.write(raw + b"PING\r\n")
        with suppress(ConnectionError):
            await self._writer.drain()
            await self._reader.readline()


@asynccontextmanager
async def raw_producer(settings: Settings) -> AsyncIterator[RawProducer]:
    address = urlsplit(settings.nats.split(",")[0])
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        await reader.readline()
        login = {}
        if address.username:
            login = {"user": unquote(address.username), "pass": unquote(address.password or "")}
        writer.write(f"CONNECT {json.dumps({**_OPTIONS, **login})}\r\n".encode())
        yield RawProducer(reader, writer)
    finally:
        writer.close()
