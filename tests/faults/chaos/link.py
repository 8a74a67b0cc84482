"""A link: a TCP port that forwards to a server, and can be cut, stalled or delayed.

Guarantee: bytes are never reordered or changed. A cut link resets its connections and every new one. A
stalled link accepts connections and holds their bytes until it is healed, as a network does that drops
packets. `Counts` is the evidence that a fault has hit a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Dial = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
_CHUNK_BYTES = 65_536
# Two chunks of one direction are never due at the same instant, so that their order is fixed.
_APART_S = 1e-6


@dataclass
class Counts:
    connected: int = 0
    cut: int = 0
    rejected: int = 0
    held: int = 0
    delayed: int = 0


class Link:
    def __init__(self, dial: Dial) -> None:
        self._dial = dial
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False
        self._delay_s = 0.0
        self.counts = Counts()
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        # Without a cancellation, which `asyncio.start_server` would log as an error.
        await self.heal()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cut(self) -> None:
        self._is_cut = True
        self.counts.cut += len(self._writers) // 2
        for writer in self._writers:
            writer.transport.abort()

    async def stall(self) -> None:
        self._flows.clear()

    async def delay(self, seconds: float) -> None:
        self._delay_s = seconds

    async def heal(self) -> None:
        self._is_cut = False
        self._delay_s = 0.0
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._forward(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            self.counts.rejected += 1
            writer.transport.abort()
            return
        server_reader, server_writer = await self._dial()
        self.counts.connected += 1
        pair = {writer, server_writer}
        self._writers |= pair
        pumps = [
            asyncio.ensure_future(self._pump(reader, server_writer)),
            asyncio.ensure_future(self._pump(server_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._writers -= pair
            server_writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        last_due_s = 0.0
        while data := await reader.read(_CHUNK_BYTES):
            if not self._flows.is_set():
                self.counts.held += 1
                await self._flows.wait()
            due_s = max(loop.time() + self._delay_s, last_due_s)
            if due_s > loop.time():
                self.counts.delayed += 1
                last_due_s = due_s + _APART_S
                loop.call_at(last_due_s, writer.write, data)
            else:
                writer.write(data)
                await writer.drain()
