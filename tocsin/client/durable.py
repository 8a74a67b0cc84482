"""The durable consumer in NATS: made at the kept mark, made again when it is gone, refused when it is somebody
else's.

Guarantee: what NATS remembers never decides what is handled. A consumer begins right after the mark; one that
has acknowledged what this service never handled (its database was restored from a backup) is made anew at the
mark.

Why the consumer is read before the mark: a process sets the mark first and makes the consumer then. Read in
that order, a consumer without a mark belongs to somebody else.

On failure: a stream that is behind the mark is being rebuilt, and is waited for. One that has another record at
the mark is another log: `Unusable`, because every sequence would be mistaken.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tocsin.client._inbox_protocol import Kept, Mark, Unusable
from tocsin.client._start_position import Start, find_start, record_id
from tocsin.client.delivery import Delivery
from tocsin.client.streams import API_TIMEOUT_S, Bus
from tocsin.core.cancellation import cancellable
from tocsin.core.errors import Unreachable

_log = logging.getLogger("tocsin.client")
_PATIENCE_S = 10.0
_POLL_S = 0.2
_SAY_AGAIN_S = 30.0
_WORKERS = "tocsin workers"


async def wait_for_stream(bus: Bus, *, is_first: bool) -> StreamInfo:
    """On a new installation the publisher makes it a moment later. Later on it is waited for, for ever."""
    js = bus.client.jetstream(timeout=API_TIMEOUT_S)
    patient_until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await cancellable(js.stream_info(bus.stream))
        except NotFoundError:
            if is_first and time.monotonic() > patient_until:
                raise Unreachable(
                    f"the stream {bus.stream!r} does not exist",
                    remedy=f"`tocsin run cdc` makes it; is the namespace "
                    f"{bus.namespace!r} the one of your tocsin?",
                ) from None
        await asyncio.sleep(_POLL_S)


class Durable:
    def __init__(self, bus: Bus, name: str, subjects: list[str], delivery: Delivery) -> None:
        self._bus = bus
        self._js: JetStreamContext = bus.client.jetstream(timeout=API_TIMEOUT_S)
        self._stream = bus.stream
        self._name = name
        self._subjects = subjects
        self._delivery = delivery

    async def ensure(self, kept: Kept, start: Start, *, is_first: bool) -> None:
        stream = await wait_for_stream(self._bus, is_first=is_first)
        found = await self._info()
        if found is not None:
            self._refuse_foreign(found.config)
        mark = await kept.mark()
        if mark is None:
            # One that never delivered anything may have been made for us by an operator.
            if found is not None and found.delivered is not None and found.delivered.consumer_seq > 0:
                raise Unusable(
                    f"the consumer {self._name!r} is in use in nats, and this service has kept nothing of it: "
                    "does another service use the name? choose another one, or remove it with "
                    f"`nats consumer rm {self._stream} {self._name}`"
                )
            mark = await kept.begin(await find_start(self._js, self._stream, start))
        await self._refuse_other_log(mark)
        self._say_what_is_gone(mark, int(stream.state.first_seq))
        if found is not None and await self._knows_more(found, mark, kept):
            _log.warning(
                "consumer %s: nats has seen more acknowledged than is kept here (a restored database?): it "
                "begins again after %s",
                self._name,
                mark.seq,
            )
            await self._js.delete_consumer(self._stream, self._name)
            found = None
        await self._make(mark, found)

    async def floor(self) -> Mark:
        """Everything up to there is acknowledged, which is done only with what was handled."""
        info = await self._js.consumer_info(self._stream, self._name)
        seq = info.ack_floor.stream_seq if info.ack_floor else 0
        return Mark(seq, await record_id(self._js, self._stream, seq))

    async def _info(self) -> ConsumerInfo | None:
        try:
            found: ConsumerInfo = await self._js.consumer_info(self._stream, self._name)
        except NotFoundError:
            return None
        return found

    async def _refuse_other_log(self, mark: Mark) -> None:
        said_s = 0.0
        while (last := await self._last()) < mark.seq:
            if time.monotonic() - said_s > _SAY_AGAIN_S:
                said_s = time.monotonic()
                _log.warning(
                    "consumer %s: the stream %s ends at %s, and %s is handled already: waiting until it is rebuilt; "
                    "if this is a new log, give the consumer a new name",
                    *(self._name, self._stream, last, mark.seq),
                )
            await asyncio.sleep(_POLL_S)
        found = await record_id(self._js, self._stream, mark.seq)
        if mark.id is not None and found is not None and found != mark.id:
            raise Unusable(
                f"the stream {self._stream!r} has the record {found} at {mark.seq}, and {self._name!r} has "
                f"handled {mark.id} there: this is another log; give the consumer a new name, or remove what "
                "it has kept"
            )

    def _say_what_is_gone(self, mark: Mark, first: int) -> None:
        if first > mark.seq + 1:
            _log.error(
                "consumer %s: records %s to %s are no longer in the stream %s and were never handled: it was away "
                "for longer than the stream keeps them; read them from the database",
                *(self._name, mark.seq + 1, first - 1, self._stream),
            )

    async def _last(self) -> int:
        return int((await cancellable(self._js.stream_info(self._stream))).state.last_seq)

    async def _knows_more(self, found: ConsumerInfo, mark: Mark, kept: Kept) -> bool:
        """Whether a record of ours is acknowledged there and was never handled here. Few lie between the two."""
        acknowledged = found.ack_floor.stream_seq if found.ack_floor else 0
        if acknowledged <= mark.seq:
            return False
        seqs = [
            seq for subject in self._subjects async for seq in self._between(subject, mark.seq, acknowledged)
        ]
        return not await kept.are_handled(seqs)

    async def _between(self, subject: str, after: int, until: int) -> AsyncIterator[int]:
        seq = after
        while seq < until:
            try:
                found = await self._js.get_msg(self._stream, seq=seq + 1, subject=subject, next=True)
            except NotFoundError:
                return
            seq = int(found.seq or until + 1)
            if seq <= until:
                yield seq

    async def _make(self, mark: Mark, found: ConsumerInfo | None) -> None:
        wanted = ConsumerConfig(
            name=self._name,
            durable_name=self._name,
            description="tocsin client",
            filter_subject=self._subjects[0] if len(self._subjects) == 1 else None,
            filter_subjects=self._subjects if len(self._subjects) > 1 else None,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self._delivery.ack_wait_s,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=mark.seq + 1,
            max_deliver=-1,
            max_ack_pending=self._delivery.most_pending,
        )
        if found is not None:
            # Where it began cannot be changed, and need not be.
            wanted = replace(
                wanted,
                description=found.config.description,
                deliver_policy=found.config.deliver_policy,
                opt_start_seq=found.config.opt_start_seq,
                opt_start_time=found.config.opt_start_time,
            )
            if all(getattr(found.config, name) == getattr(wanted, name) for name in _COMPARED):
                return
        await self._js.add_consumer(self._stream, wanted)

    def _refuse_foreign(self, config: ConsumerConfig) -> None:
        if (config.description or "").startswith(_WORKERS):
            raise Unusable(f"the consumer {self._name!r} is tocsin's own: choose another name")
        if config.deliver_subject is not None or config.ack_policy != AckPolicy.EXPLICIT:
            raise Unusable(
                f"the consumer {self._name!r} exists in nats and is not one that is pulled and acknowledged "
                f"record by record: choose another name, or remove it with `nats consumer rm {self._stream} "
                f"{self._name}`"
            )


_COMPARED = ("filter_subject", "filter_subjects", "ack_wait", "max_deliver", "max_ack_pending")
