"""Reads a partition of a stream, in order and without gaps.

Guarantee: `next_batch` returns the messages behind the position of the partition, each once per
consumer and in stream order. It stops at a gap, and the next call starts again behind the last
message that it returned. A message that ended an arrival gap carries the start of the gap. If a
stream was created again, or has lost its end, sequences do not identify what was read before: the
reader continues by the time of arrival, behind `watermark`.

Messages that a stream with stable sequences no longer has, because they expired, come from the
table (`Lane.read_stored`).

Why an ephemeral consumer without acknowledgements: the position is in Postgres, and a consumer that
starts there can be created at any time. Messages that the server sent to a connection that died are
lost; the consumer's own sequence shows the gap.

On failure: a deleted consumer or a reconnection leads to a new consumer. A missing stream is an
error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from rules.lanes.arrival_gap import SHORTEST_GAP, SHORTEST_GAP_OF_A_SLOW_STREAM
from rules.lanes.batch_size import BatchSize
from rules.lanes.lane import Lane, LaneMessage
from rules.lanes.lineage import LINEAGE_HEADER, parse_lineage
from rules.lanes.partition import Partition, PartitionWaits
from tocsin.core.db import Connection
from tocsin.core.errors import Unreachable
from tocsin.core.instant import EPOCH, MICROSECOND, instant_of, parse_instant
from tocsin.core.nats_client import api_of
from tocsin.core.pull import ConsumerGone, Puller
from tocsin.core.temporary_consumer import create_temporary_consumer, delete_temporary_consumer

_log = structlog.get_logger()
_SOURCE = "Nats-Stream-Source"
_SOURCE_SEQ = re.compile(r"\S+ ([0-9]{1,18})(?: |$)")
_REQUEST_S = 5.0
_INACTIVE_S = 30
# Of one request; the largest message that the server accepts must fit in.
_LEAST_BYTES = 4 * 1024 * 1024
# A message counts for more than its body.
_MESSAGE_BYTES = 100


class Reader:
    def __init__(self, bus: Client, lane: Lane, partition: Partition, batch_size: BatchSize) -> None:
        self._bus = bus
        self._lane = lane
        self._partition = partition
        self._batch_size = batch_size
        self._has_gaps = lane.canary_subject(partition.number) is not None
        self._consumer = ""
        self._puller: Puller | None = None
        self._waiting: list[Msg] = []
        self._reconnects = 0
        self._delivered = 0
        self._last_seq = 0
        self._expired_until = 0
        self._not_before = EPOCH
        self._last_arrival_at = partition.position.watermark
        self._checks_with_missing = 0

    async def wait_for_message(self, connection: Connection, timeout_s: float) -> bool:
        """Return as soon as a message is there; false if none comes in time."""
        if self._puller is None or self._bus.stats["reconnects"] != self._reconnects:
            await self._open(connection)
        if self._last_seq < self._expired_until:
            return True
        if not self._waiting:
            await self._collect(timeout_s)
        return bool(self._waiting)

    async def next_batch(self, connection: Connection, *, is_stream_slow: bool = False) -> list[LaneMessage]:
        """The next messages, in order and without a gap; as many as fit in a transaction.

        `is_stream_slow`: the stream stores messages long after they are published.
        """
        if self._puller is None:
            return []
        if self._last_seq < self._expired_until:
            return await self._read_expired(connection)
        await self._collect(0.0)
        self._raise_floor(self._partition.position.watermark)
        shortest_gap = SHORTEST_GAP_OF_A_SLOW_STREAM if is_stream_slow else SHORTEST_GAP
        return await self._take_batch(shortest_gap)

    async def _collect(self, timeout_s: float) -> None:
        assert self._puller is not None
        if len(self._waiting) >= self._lane.max_batch:
            return
        try:
            self._waiting += await self._puller.next_batch(timeout_s)
        except ConsumerGone as gone:
            _log.info("consumer gone", lane=self._lane.name, partition=self._partition.number, error=gone)
            await self.close()

    async def _read_expired(self, connection: Connection) -> list[LaneMessage]:
        missing = self._expired_until - self._last_seq
        messages = await self._lane.read_stored(
            connection, self._last_seq, min(missing, self._lane.max_batch)
        )
        if not messages:
            raise PartitionWaits(
                f"the stream {self._lane.stream!r} no longer has seq {self._last_seq + 1}, and the log has no "
                f"record at seq {self._last_seq + 1}",
                remedy="restore a backup that has it, or accept the loss with `tocsin cdc adopt`",
            )
        self._last_seq = messages[-1].seq
        return messages

    async def check_consumer(self) -> bool:
        """Find out whether everything that the server has was returned.

        Used while no message comes: no later message reveals that the consumer is gone, or that a
        message was lost on the way. In both cases the next call starts again behind the last
        message that was returned.
        """
        if self._puller is None or self._waiting:
            return False
        info = await _request(self._bus, f"CONSUMER.INFO.{self._lane.stream}.{self._consumer}")
        if "error" in info:
            await self.close()
            return False
        is_missing = int(info["delivered"]["consumer_seq"]) > self._delivered
        self._checks_with_missing = self._checks_with_missing + 1 if is_missing else 0
        if self._checks_with_missing > 2:
            await self.close()
        return not is_missing and int(info["num_pending"]) == 0

    async def close(self) -> None:
        puller, self._puller = self._puller, None
        self._waiting = []
        if puller is not None:
            await puller.close()
            await delete_temporary_consumer(self._bus, self._lane.stream, self._consumer)

    def _raise_floor(self, watermark: datetime | None) -> None:
        """Unread messages arrived later, even if the clock of the server went back."""
        if watermark is not None:
            self._not_before = max(self._not_before, watermark + MICROSECOND)

    async def _take_batch(self, shortest_gap: timedelta) -> list[LaneMessage]:
        messages: list[LaneMessage] = []
        size = 0
        for index, raw in enumerate(self._waiting):
            if messages and size + len(raw.data) > self._batch_size.max_bytes:
                self._waiting = self._waiting[index:]
                return messages
            delivered, message = self._read(raw)
            if delivered != self._delivered + 1:
                _log.info("messages lost in transit", lane=self._lane.name, before=message.seq)
                await self.close()
                return messages
            if self._lane.has_stable_sequences and message.seq > self._last_seq + 1:
                self._expired_until = message.seq - 1
                self._waiting = self._waiting[index:]
                return messages
            self._delivered = delivered
            self._checks_with_missing = 0
            if message.seq > self._last_seq:
                self._not_before, self._last_seq = message.at, message.seq
                messages.append(self._with_gap(message, shortest_gap))
                size += len(raw.data) + _MESSAGE_BYTES
        self._waiting = []
        return messages

    def _read(self, raw: Msg) -> tuple[int, LaneMessage]:
        """The consumer sequence, and the message; see `$JS.ACK` in the documentation of NATS."""
        parts = raw.reply.split(".")
        _, seq, delivered, stored_ns = parts[4:8] if len(parts) == 9 else parts[6:10]
        stored_at = instant_of(int(stored_ns) // 1000)
        headers = raw.headers or {}
        source_seq = _source_seq(raw) if self._lane.is_sourced(raw.subject) else None
        lineage = parse_lineage(headers[LINEAGE_HEADER]) if LINEAGE_HEADER in headers else ()
        at = max(stored_at, self._not_before)
        return int(delivered), LaneMessage(
            int(seq), at, raw.subject, raw.data, source_seq, stored_at=stored_at, lineage=lineage
        )

    def _with_gap(self, message: LaneMessage, shortest_gap: timedelta = SHORTEST_GAP) -> LaneMessage:
        before, self._last_arrival_at = self._last_arrival_at, message.at
        if not self._has_gaps or before is None or message.at - before <= shortest_gap:
            return message
        return message._replace(gap_began_at=before)

    async def _open(self, connection: Connection) -> None:
        await self.close()
        self._reconnects = self._bus.stats["reconnects"]
        start, incarnation = await self._find_start()
        config = {
            "ack_policy": "none",
            "filter_subjects": self._lane.subjects(self._partition.number),
            "inactive_threshold": _INACTIVE_S * 10**9,
            "mem_storage": True,
            "num_replicas": 1,
            **start,
        }
        # Services have consumers of the record stream; those of the data stream are all ours.
        is_shared = self._lane.has_stable_sequences
        created = await create_temporary_consumer(
            self._bus, self._lane.stream, config, _REQUEST_S, reserved_names=is_shared
        )
        _raise_error(created, self._lane.stream)
        if incarnation is not None:
            last_seq = int(created["delivered"]["stream_seq"])
            await self._partition.begin_incarnation(connection, last_seq, incarnation)
        position = self._partition.position
        self._consumer = created["name"]
        self._delivered = self._checks_with_missing = 0
        self._last_seq = position.last_seq
        max_bytes = max(_LEAST_BYTES, 2 * self._bus.max_payload)
        self._puller = await Puller.open(
            self._bus, self._lane.stream, self._consumer, self._lane.max_batch, max_bytes
        )

    async def _find_start(self) -> tuple[dict[str, Any], str | None]:
        """The start of the consumer, and the creation time of the stream if it is new."""
        position = self._partition.position
        behind = {"deliver_policy": "by_start_sequence", "opt_start_seq": position.last_seq + 1}
        stream = await _request(self._bus, f"STREAM.INFO.{self._lane.stream}")
        _raise_error(stream, self._lane.stream)
        if self._lane.has_stable_sequences:
            self._expired_until = int(stream["state"]["first_seq"]) - 1
            if self._expired_until > position.last_seq:
                _log.warning(
                    "records expired in the stream", after=position.last_seq, until=self._expired_until
                )
            return behind, None
        incarnation = str(stream["created"])
        if position.incarnation == incarnation and await self._has_last_message(stream["state"]):
            return behind, None
        if position.watermark is None:
            return {"deliver_policy": "all"}, incarnation
        _log.warning(
            "stream created again or rolled back", lane=self._lane.name, partition=self._partition.number
        )
        after = (position.watermark + MICROSECOND).isoformat()
        return {"deliver_policy": "by_start_time", "opt_start_time": after}, incarnation

    async def _has_last_message(self, state: Mapping[str, Any]) -> bool:
        """Whether the stream still has the message that was read last, or it has expired.

        A stream that lost its end in a power failure may have grown past the position since.
        """
        position = self._partition.position
        if int(state["last_seq"]) < position.last_seq:
            return False
        if position.last_stored_at is None or int(state["first_seq"]) > position.last_seq:
            return True
        body = {"seq": position.last_seq}
        found = await _request(self._bus, f"STREAM.MSG.GET.{self._lane.stream}", body)
        if "error" in found:
            return False
        return parse_instant(found["message"]["time"]) == position.last_stored_at


def _source_seq(raw: Msg) -> int | None:
    """The sequence in the stream of origin, from the header that the server adds. Only of a message
    whose subject proves that the server sourced it."""
    found = _SOURCE_SEQ.match((raw.headers or {}).get(_SOURCE, ""))
    return int(found[1]) if found else None


async def _request(bus: Client, subject: str, body: object = None) -> dict[str, Any]:
    payload = b"" if body is None else json.dumps(body).encode()
    reply = await bus.request(f"{api_of(bus)}.{subject}", payload, timeout=_REQUEST_S)
    answer: dict[str, Any] = json.loads(reply.data)
    return answer


def _raise_error(answer: dict[str, Any], stream: str) -> None:
    if "error" in answer:
        raise Unreachable(
            f"the stream {stream!r} cannot be read ({answer['error'].get('description')}): it is tried again"
        )
