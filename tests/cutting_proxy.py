"""A TCP proxy that loses what a server sends and then cuts the connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_losing = False
        self._left: int | None = None
        self.port = 0

    def lose_answers(self) -> None:
        """From now on, nothing that the server sends arrives, as on a connection that has died."""
        self._is_losing = True

    def cut_after(self, answer_bytes: int) -> None:
        """Cut in the middle of what the server sends next."""
        self._left = answer_bytes

    def cut(self) -> None:
        """Close all connections. New ones work."""
        for writer in self._writers:
            writer.transport.abort()
        self._is_losing, self._left = False, None

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, server_writer}
        try:
            await asyncio.gather(
                self._forward(reader, server_writer, is_answer=False),
                self._forward(server_reader, writer, is_answer=True),
            )
        finally:
            self._writers -= {writer, server_writer}

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if is_answer and self._left is not None and len(data) >= self._left:
                    writer.write(data[: self._left])
                    await writer.drain()
                    self.cut()
                elif not (is_answer and self._is_losing):
                    self._left = self._left - len(data) if is_answer and self._left else self._left
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def cutting_proxy(host: str, port: int) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(host, port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
