"""The publisher: sends the records after the last sequence of the stream.

Guarantee I3 (docs/guarantees.md): the publisher keeps no durable state. Its position comes from the
stream and its data from the log. So it may be killed at any line, and the stream rejects every
message of a second publisher that runs at the same time. Safety does not depend on the lease: it
only saves standbys from publishing messages that the stream would reject. With synchronous
replication, records are held back until the standby has them.

On failure:
- The stream rejects messages or does not acknowledge them: the publisher resumes at the last
  sequence of the stream, with a growing delay while it makes no progress.
- The stream is ahead of the log, or its last messages are not the records of the log: Postgres lost
  commits, or another process writes to the stream. The publisher stops and reports what to do,
  because continuing would create two versions of the log.
- The log has a hole: the publisher stops and reports it.
- Retention dropped records before they were published: they become a recorded gap. Tombstones fill
  their sequences, and the publisher continues at the horizon of the log.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from cdc.chain import Chain, ChainBroken, SentChunk
from cdc.divergence import Bounds, find_divergence
from cdc.errors import LogHole, Stopped, StreamAhead, StreamDiffers
from cdc.gaps import record_dropped
from cdc.log_reader import LogReader, Record
from cdc.metrics import CHAIN_BROKEN, CHUNKS, POSITION, PUBLISHED
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
# How often an idle publisher compares its position with the stream.
_POSITION_CHECK_S = 2.0
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
        # Where the last resume started: shows whether a broken chain made progress.
        self._resumed_at = -1
        self._chunk = settings.cdc_chunk
        self._delay_s = 0.0
        self._position_checked_s = 0.0
        # Chunks that were sent and are not acknowledged yet, oldest first.
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
                await self._publish_while_held(lease, connection, bus)
            except Stopped as stopped:
                await report_problem(connection, stopped.kind, stopped.message, remedy=stopped.remedy)
                raise
            finally:
                self._drop_window()

    async def _publish_while_held(self, lease: Lease, connection: Connection, bus: Client) -> None:
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
                await self._publish_or_wait(js, chain, reader)

    @asynccontextmanager
    async def _checking_stream(self, bus: Client, holder: str) -> AsyncIterator[asyncio.Task[None]]:
        """Run the stream check on its own session, because the publisher's session waits for commits."""
        async with open_service_session(self._settings, "cdc check") as connection:
            task = asyncio.create_task(StreamCheck(self._settings, connection, bus, holder).run())
            try:
                yield task
            finally:
                await end_tasks([task])

    async def _publish_or_wait(self, js: JetStreamContext, chain: Chain, reader: LogReader) -> None:
        try:
            if not await self.publish_next(chain, reader):
                await self._check_position(js, reader)
                await reader.wait_for_commit(self._settings.cdc_poll_ms / 1000)
        except ChainBroken as broken:
            _log.warning("chain broken", error=broken)
            CHAIN_BROKEN.add(1)
            before = self._resumed_at
            await self.resume(js, reader)
            await self._back_off(progressed=self._resumed_at > before)

    async def _back_off(self, *, progressed: bool) -> None:
        """Wait before the next attempt: not at all after progress, else twice as long as last time.

        A stream that rejects messages (a full disk) must not be retried a thousand times a second.
        """
        self._delay_s = 0.0 if progressed else min(max(self._delay_s * 2, _FIRST_DELAY_S), _LONGEST_DELAY_S)
        await asyncio.sleep(self._delay_s)

    async def _check_position(self, js: JetStreamContext, reader: LogReader) -> None:
        """Resume if the stream was lost or written by another process.

        The next record would show it as well. This shows it even if there is no next record.
        """
        if time.monotonic() - self._position_checked_s < _POSITION_CHECK_S:
            return
        self._position_checked_s = time.monotonic()
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
        if records:
            await self._send(chain, reader, records)
        elif self._window:
            await self._confirm_oldest()
        elif await reader.head() <= self.position:
            return False
        else:
            await self._publish_missing(chain, reader, limit)
        return True

    async def _send(self, chain: Chain, reader: LogReader, records: Sequence[Record]) -> None:
        await self._replication.confirm(reader.connection)
        sent = await chain.send(records)
        self._window.append((chain, sent))
        self.position = sent.last
        if sent.count < len(records):
            # The records are large, and the chunk has only a part of them: read no more next time.
            self._chunk = sent.count
        else:
            self._chunk = min(self._chunk * 2, self._settings.cdc_chunk)

    async def _publish_missing(self, chain: Chain, reader: LogReader, limit: int) -> None:
        """Send tombstones for the recorded gap after the position, or record what was dropped there."""
        tombstones = await reader.read_gap(self.position, limit)
        if tombstones:
            await self._send(chain, reader, tombstones)
        # Read again: a record that was committed after the first read is not missing.
        elif not await reader.read(self.position, 1):
            await self._record_dropped_range(reader)

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

    async def _record_dropped_range(self, reader: LogReader) -> None:
        """Record the missing records before the horizon as a gap: retention dropped them unpublished.

        `LogHole` if the missing records are not before the horizon.
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
