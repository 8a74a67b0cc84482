"""The publisher: sends the records after the last sequence of the stream.

Guarantee (I3): it has no state of its own. Its position comes from the stream and its data from the
table. So it may be killed at any line, and the stream rejects every message of a second publisher
that runs at the same time.

The lease only keeps standbys from doing rejected work. On failure the chain is dropped and resumed
at the last sequence of the stream, more slowly each time that this makes no progress. A stream that
is ahead of the table, or whose last messages are not the records of the table, means that Postgres
lost commits or that another process writes to the stream: the publisher stops and reports what to
do, because continuing would create two versions of the log. It also stops at a hole of the log that
was not accepted. Records that were dropped with their partition before they were published become a
recorded gap: tombstones fill their sequences, and the publisher continues at the horizon of the
log. With synchronous replication, records are held back until the standby has them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from cdc.chain import Chain, ChainBroken, SentChunk
from cdc.divergence import Bounds, find_divergence
from cdc.errors import LogHole, Stopped, StreamAhead, StreamDiffers
from cdc.gaps import record_dropped
from cdc.log_reader import LogReader
from cdc.metrics import BROKEN, CHUNKS, POSITION, PUBLISHED
from cdc.replication import Replication
from cdc.report import report_problem
from cdc.stream import ensure_stream
from cdc.stream_check import StreamCheck
from clock.lease import Lease, hold_lease
from migrations.runner import refuse_unmigrated
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, open_service_session
from tocsin.core.service import beat, end_tasks
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_ACK_S = 3.0
_IN_FLIGHT_BYTES = 32 * 1024 * 1024
# How often an idle publisher checks that the stream has not changed.
_CHECK_S = 2.0
_FIRST_DELAY_S = 0.05
_LONGEST_DELAY_S = 5.0
# How many records at the end of the stream are compared with the log before anything is published
# (1,000 take half a second, one by one).
_COMPARED = 200
_CAUSES = "postgres lost commits, or another process publishes to the subjects of the stream"
_REMEDY = "restore a newer backup of postgres, or accept the loss with `tocsin cdc adopt`"


class Publisher:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.position = 0
        self._resumed_at = -1
        self._chunk = settings.cdc_chunk
        self._delay_s = 0.0
        self._checked_s = 0.0
        self._window: deque[tuple[Chain, SentChunk]] = deque()
        self._replication = Replication()

    async def run(self) -> None:
        async with hold_lease(self._settings, "cdc") as lease:
            while True:
                await lease.wait_until_held()
                await self._lead(lease)

    async def _lead(self, lease: Lease) -> None:
        async with (
            open_service_session(self._settings, "cdc") as connection,
            open_bus(self._settings, "cdc") as bus,
        ):
            await refuse_unmigrated(connection)
            try:
                await self._publish_while(lease, connection, bus)
            except Stopped as stopped:
                await report_problem(connection, stopped.kind, stopped.message, remedy=stopped.remedy)
                raise
            finally:
                self._drop_window()

    async def _publish_while(self, lease: Lease, connection: Connection, bus: Client) -> None:
        reader = LogReader(connection)
        await reader.keep_plans()
        await reader.listen()
        js = bus.jetstream(timeout=_ACK_S)
        chain = await Chain.open(bus, self._settings.subjects, self._settings.source)
        await self.resume(js, reader)
        _log.info("cdc leads", holder=lease.holder, position=self.position)
        async with self._checking_stream(bus, lease.holder) as check:
            while lease.keep():
                if check.done():
                    # Raises the error that ended the check.
                    check.result()
                beat(lease.role, rest_s=self._settings.cdc_poll_ms / 1000)
                await self._work(js, chain, reader)

    @asynccontextmanager
    async def _checking_stream(self, bus: Client, holder: str) -> AsyncIterator[asyncio.Task[None]]:
        """Run the stream check on its own session, because the publisher's session waits for commits."""
        async with open_service_session(self._settings, "cdc check") as connection:
            task = asyncio.create_task(StreamCheck(self._settings, connection, bus, holder).run())
            try:
                yield task
            finally:
                await end_tasks([task])

    async def _work(self, js: JetStreamContext, chain: Chain, reader: LogReader) -> None:
        try:
            if not await self.publish_next(chain, reader):
                await self._check_stream(js, reader)
                await reader.wait_for_commit(self._settings.cdc_poll_ms / 1000)
        except ChainBroken as broken:
            _log.warning("chain broken", error=broken)
            BROKEN.add(1)
            before = self._resumed_at
            await self.resume(js, reader)
            await self._slow_down(progressed=self._resumed_at > before)

    async def _slow_down(self, *, progressed: bool) -> None:
        """Delay the next attempt.

        A stream that rejects messages (a full disk) must not be retried a thousand times a second.
        """
        self._delay_s = 0.0 if progressed else min(max(self._delay_s * 2, _FIRST_DELAY_S), _LONGEST_DELAY_S)
        await asyncio.sleep(self._delay_s)

    async def _check_stream(self, js: JetStreamContext, reader: LogReader) -> None:
        """Notice that the stream was lost or written by another process.

        Does not wait for the next record.
        """
        if time.monotonic() - self._checked_s < _CHECK_S:
            return
        self._checked_s = time.monotonic()
        _, last = await ensure_stream(js, self._settings, await reader.horizon())
        if last != self.position:
            _log.warning("stream moved", position=self.position, last=last)
            await self.resume(js, reader)

    async def resume(self, js: JetStreamContext, reader: LogReader) -> None:
        """Start at the last sequence of the stream.

        The stream is read before the head. In the other order, a concurrent publisher would look
        like a stream that is ahead.
        """
        self._drop_window()
        horizon = await reader.horizon()
        first, last = await ensure_stream(js, self._settings, horizon)
        head = await reader.head()
        if last > head:
            raise StreamAhead(
                f"the stream {self._settings.stream!r} is at {last}, the log only at {head} ({_CAUSES}); "
                "nothing is published until this is resolved",
                remedy=_REMEDY,
            )
        await self._check_last_records(js, reader, Bounds(max(first, horizon), last, head))
        self.position = self._resumed_at = last
        POSITION.set(last)

    async def _check_last_records(self, js: JetStreamContext, reader: LogReader, bounds: Bounds) -> None:
        """Check that the last messages of the stream are the records of the log.

        Sequences alone do not show that a restored log has grown past the stream, or that a foreign
        message took a sequence: the record at that seq would never be published.
        """
        found = await find_divergence(js, self._settings, reader, bounds, bounds.last - _COMPARED)
        if found is not None:
            raise StreamDiffers(
                f"in the stream {self._settings.stream!r}, {found.text} ({_CAUSES}); nothing is published "
                "until this is resolved",
                remedy=_REMEDY,
            )

    async def publish_next(self, chain: Chain, reader: LogReader) -> bool:
        """Send one chunk, or confirm the oldest in flight; False if there is nothing left to do."""
        limit = await self._next_chunk_size()
        records = await reader.read(self.position, limit)
        if not records:
            if self._window:
                await self._confirm_oldest()
                return True
            if await reader.head() <= self.position:
                return False
            records = await reader.read_gap(self.position, limit)
        if not records:
            # Read again: a commit between the read and the head is not a hole.
            if not await reader.read(self.position, 1):
                await self._pass_dropped(reader)
            return True
        await self._replication.confirm(reader.connection)
        sent = await chain.send(records)
        self._window.append((chain, sent))
        self.position = sent.last
        # Large records make short chunks: records that would not be sent are not read.
        self._chunk = (
            sent.count if sent.count < len(records) else min(self._chunk * 2, self._settings.cdc_chunk)
        )
        return True

    async def _next_chunk_size(self) -> int:
        """Wait until a chunk fits within `cdc_in_flight`.

        Returns how many records it may have.
        """
        limit = self._settings.cdc_in_flight
        chunk = min(self._chunk, limit)
        while self._window and (
            sum(sent.count for _, sent in self._window) + chunk > limit
            or sum(sent.bytes for _, sent in self._window) > _IN_FLIGHT_BYTES
        ):
            await self._confirm_oldest()
        return chunk

    async def _pass_dropped(self, reader: LogReader) -> None:
        """Record a gap up to the horizon of the log, which was dropped on purpose.

        Any other hole stops the publisher.
        """
        horizon = await reader.horizon()
        if horizon <= self.position + 1:
            raise LogHole(
                f"record {self.position + 1} is missing from the log, and later ones exist; nothing is "
                "published past a hole",
                remedy="restore it from a backup, or accept the loss with `tocsin cdc adopt`",
            )
        await record_dropped(reader.connection, self._settings, self.position + 1, horizon - 1)

    async def _confirm_oldest(self) -> None:
        chain, sent = self._window.popleft()
        await chain.confirm(sent, _ACK_S)
        PUBLISHED.add(sent.count)
        CHUNKS.add(1)
        POSITION.set(sent.last)

    def _drop_window(self) -> None:
        for chain, sent in self._window:
            chain.forget(sent)
        self._window.clear()
