"""Reading a partition of a stream, in order and without a hole.

Guarantee: `next` returns the messages behind the partition's position, each once per opening and in stream order; a gap
ends what it returns, and the next call begins again behind what was returned. Where a stream was made anew, or has lost
its end, sequences say nothing about what was read before: the reader goes on by the time of arrival, behind
`watermark`.

Why an ephemeral consumer without acknowledgements: the position is in Postgres, and a consumer that starts there can be
made at any time. What the server sent to a connection that died is gone; the consumer's own sequence shows the gap.

On failure: a consumer that is gone, and a reconnection, make a new consumer. A stream that is gone is an error.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from rules.lanes.batch_size import Pace
from rules.lanes.lane import Lane, Message
from rules.lanes.partition import Partition
from tocsin.core.db import Connection
from tocsin.core.errors import Unreachable
from tocsin.core.instant import EPOCH, MICROSECOND, instant_of, parse_instant
from tocsin.core.pull import ConsumerGone, Puller

_log = structlog.get_logger()
_SOURCE = "Nats-Stream-Source"
_REQUEST_S = 5.0
_INACTIVE_S = 30
# Of one request; the largest message that the server takes must fit in.
_LEAST_BYTES = 4 * 1024 * 1024
# A message counts for more than its body.
_MESSAGE_BYTES = 100


class Reader:
    def __init__(self, bus: Client, lane: Lane, partition: Partition, pace: Pace) -> None:
        self._bus = bus
        self._lane = lane
        self._partition = partition
        self._pace = pace
        self._consumer = ""
        self._puller: Puller | None = None
        self._waiting: list[Msg] = []
        self._connection = 0
        self._delivered = 0
        self._last_seq = 0
        self._not_before = EPOCH
        self._looked_at: datetime | None = None
        self._missing = 0

    async def ready(self, connection: Connection, timeout_s: float) -> bool:
        """As soon as a message is there; false when none comes in time."""
        if self._puller is None or self._bus.stats["reconnects"] != self._connection:
            await self._open(connection)
        if not self._waiting:
            await self._collect(timeout_s)
        return bool(self._waiting)

    async def next(self) -> list[Message]:
        """What has come by now, in order, without a hole, and no more than fits in a transaction."""
        if self._puller is None:
            return []
        await self._collect(0.0)
        self._pass(self._partition.position.watermark)
        return await self._take()

    async def _collect(self, timeout_s: float) -> None:
        assert self._puller is not None
        if len(self._waiting) >= self._lane.batch:
            return
        try:
            self._waiting += await self._puller.next_batch(timeout_s)
        except ConsumerGone as gone:
            _log.info("consumer gone", lane=self._lane.name, partition=self._partition.number, error=gone)
            await self.close()

    async def look(self) -> datetime | None:
        """While nothing comes: up to when everything that the server stored has been returned, if that is known.

        The instant is that of the look before, and the proof is of now: a message that was being stored at the
        first look is counted in the second.
        """
        if self._puller is None or self._waiting:
            return None
        found = await _ask(self._bus, f"CONSUMER.INFO.{self._lane.stream}.{self._consumer}")
        if "error" in found:
            await self.close()
            return None
        before, self._looked_at = self._looked_at, parse_instant(found["ts"])
        delivered = int(found["delivered"]["consumer_seq"])
        # Sent to us twice a look ago and not here: it was lost on the way, and nothing will show the gap.
        self._missing = self._missing + 1 if delivered > self._delivered else 0
        if self._missing > 2:
            await self.close()
        if delivered != self._delivered or int(found["num_pending"]) > 0 or before is None:
            return None
        self._pass(before - MICROSECOND)
        return before - MICROSECOND

    async def close(self) -> None:
        puller, self._puller = self._puller, None
        self._waiting = []
        self._looked_at = None
        if puller is not None:
            await puller.close()
            with suppress(NatsError, OSError, TimeoutError):  # it goes by itself when nobody asks any more
                await self._bus.publish(f"$JS.API.CONSUMER.DELETE.{self._lane.stream}.{self._consumer}", b"")

    def _pass(self, watermark: datetime | None) -> None:
        """What is not read yet arrived later, even if the server's clock went back or two messages share an instant."""
        if watermark is not None:
            self._not_before = max(self._not_before, watermark + MICROSECOND)

    async def _take(self) -> list[Message]:
        found: list[Message] = []
        size = 0
        for place, raw in enumerate(self._waiting):
            if found and size + len(raw.data) > self._pace.batch_bytes:
                self._waiting = self._waiting[place:]
                return found
            delivered, message = self._read(raw)
            if delivered != self._delivered + 1:
                _log.info("messages lost on the way", lane=self._lane.name, before=message.seq)
                await self.close()
                return found
            self._delivered = delivered
            self._missing = 0
            if message.seq > self._last_seq:
                self._not_before, self._last_seq = message.at, message.seq
                found.append(message)
                size += len(raw.data) + _MESSAGE_BYTES
        self._waiting = []
        return found

    def _read(self, raw: Msg) -> tuple[int, Message]:
        """Its number among what the consumer sent, and the message; see `$JS.ACK` in the documentation of NATS."""
        parts = raw.reply.split(".")
        _, seq, delivered, stored_ns = parts[4:8] if len(parts) == 9 else parts[6:10]
        stored_at = instant_of(int(stored_ns) // 1000)
        source = raw.headers.get(_SOURCE) if raw.headers else None
        source_seq = int(source.split(" ")[1]) if source else None
        at = max(stored_at, self._not_before)
        return int(delivered), Message(int(seq), at, raw.subject, raw.data, source_seq)

    async def _open(self, connection: Connection) -> None:
        await self.close()
        self._connection = self._bus.stats["reconnects"]
        start, begins = await self._start()
        config = {
            "ack_policy": "none",
            "filter_subject": self._lane.subject(self._partition.number),
            "inactive_threshold": _INACTIVE_S * 10**9,
            "mem_storage": True,
            "num_replicas": 1,
            **start,
        }
        body = {"stream_name": self._lane.stream, "config": config}
        made = await _ask(self._bus, f"CONSUMER.CREATE.{self._lane.stream}", body)
        _refuse_error(made, self._lane.stream)
        if begins is not None:
            await self._partition.begin(connection, int(made["delivered"]["stream_seq"]), begins)
        position = self._partition.position
        self._consumer = made["name"]
        self._delivered = self._missing = 0
        self._last_seq = position.last_seq
        max_bytes = max(_LEAST_BYTES, 2 * self._bus.max_payload)
        self._puller = await Puller.open(
            self._bus, self._lane.stream, self._consumer, self._lane.batch, max_bytes
        )

    async def _start(self) -> tuple[dict[str, Any], str | None]:
        """Where the consumer starts; and when the stream was made, if it is another one than before."""
        position = self._partition.position
        behind = {"deliver_policy": "by_start_sequence", "opt_start_seq": position.last_seq + 1}
        if self._lane.has_stable_sequences:
            return behind, None
        stream = await _ask(self._bus, f"STREAM.INFO.{self._lane.stream}")
        _refuse_error(stream, self._lane.stream)
        created = str(stream["created"])
        if position.incarnation == created and int(stream["state"]["last_seq"]) >= position.last_seq:
            return behind, None
        if position.watermark is None:
            return {"deliver_policy": "all"}, created
        _log.warning("stream made anew", lane=self._lane.name, partition=self._partition.number)
        after = (position.watermark + MICROSECOND).isoformat()
        return {"deliver_policy": "by_start_time", "opt_start_time": after}, created


async def _ask(bus: Client, subject: str, body: object = None) -> dict[str, Any]:
    payload = b"" if body is None else json.dumps(body).encode()
    reply = await bus.request(f"$JS.API.{subject}", payload, timeout=_REQUEST_S)
    found: dict[str, Any] = json.loads(reply.data)
    return found


def _refuse_error(answer: dict[str, Any], stream: str) -> None:
    if "error" in answer:
        raise Unreachable(
            f"the stream {stream!r} cannot be read ({answer['error'].get('description')}): it is tried again"
        )
