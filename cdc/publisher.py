"""The publisher: reads the log behind the stream's last sequence, sends chunks, waits for commits.

Guarantee (I3): it holds no state of its own. Where it is, is what the stream says; what to send, is what the table
says. So it may be killed at any line, and a second one that runs at the same time is refused link by link.

The lease only keeps standbys from doing refused work. On failure the chain is dropped and taken up again at the
stream's last sequence; a stream that is ahead of the table means that Postgres lost commits: it stops and says
what to do, because overwriting would make two truths.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

import structlog
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from cdc.chain import Chain, ChainBroken
from cdc.log_reader import LogHole, LogReader
from cdc.stream import ensure_stream
from clock.lease import Lease, campaigning
from migrations.runner import refuse_unmigrated
from tocsin.core.bus import connect_bus
from tocsin.core.db import connect
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_ACK_S = 3.0


class StreamAhead(TocsinError):
    """The stream has records that the log has not."""


class Publisher:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.position = 0
        self._window: deque[tuple[int, int, asyncio.Future[int]]] = deque()

    async def run(self) -> None:
        async with campaigning(self._settings, "cdc") as lease:
            while True:
                await lease.wait_until_held()
                await self._lead(lease)

    async def _lead(self, lease: Lease) -> None:
        connection = await connect(self._settings, "cdc")
        try:
            await refuse_unmigrated(connection)
            bus = await connect_bus(self._settings, "cdc")
            try:
                reader = LogReader(connection)
                await reader.listen()
                js = bus.jetstream(timeout=_ACK_S)
                chain = await Chain.open(bus, self._settings.subjects, f"tocsin/{self._settings.namespace}")
                await self.resume(js, reader)
                _log.info("cdc leads", holder=lease.holder, position=self.position)
                while lease.held:
                    try:
                        if not await self.publish_next(chain, reader):
                            await reader.wait_for_commit(self._settings.cdc_poll_ms / 1000)
                    except ChainBroken as broken:
                        _log.warning("chain broken", error=broken)
                        await self.resume(js, reader)
            finally:
                self._drop_window()
                with suppress(NatsError, OSError):
                    await bus.close()
        finally:
            await connection.close()

    async def resume(self, js: JetStreamContext, reader: LogReader) -> None:
        """Begin at the stream's own last sequence. The stream is read first, then the head: not the reverse, or a
        racing publisher would look like a stream that is ahead."""
        self._drop_window()
        last = await ensure_stream(js, self._settings, await reader.horizon())
        head = await reader.head()
        if last > head:
            raise StreamAhead(
                f"the stream {self._settings.stream!r} is at {last}, the log only at {head}: postgres lost commits, or "
                "somebody else publishes to the stream's subjects; nothing is published until postgres is "
                "restored from a newer backup, or the stream is removed and made anew from the log"
            )
        self.position = last

    async def publish_next(self, chain: Chain, reader: LogReader) -> bool:
        """Send one chunk, or settle what is in flight; false when there is nothing left to do."""
        records = await reader.read(self.position, self._settings.cdc_chunk)
        if records:
            last = records[-1].seq
            self._window.append((last, len(records), await chain.send(records)))
            self.position = last
            while sum(count for _, count, _ in self._window) > self._settings.cdc_in_flight - len(records):
                await self._confirm_oldest(chain)
            return True
        if self._window:
            await self._confirm_oldest(chain)
            return True
        if await reader.head() > self.position and not await reader.read(self.position, 1):
            raise LogHole(
                f"record {self.position + 1} is missing from the log, and later ones are there: "
                "restore it from a backup; nothing is published past a hole"
            )
        return False

    async def _confirm_oldest(self, chain: Chain) -> None:
        last, _, acknowledged = self._window.popleft()
        await chain.confirm(acknowledged, last, _ACK_S)

    def _drop_window(self) -> None:
        for _, _, acknowledged in self._window:
            acknowledged.cancel()
        self._window.clear()
