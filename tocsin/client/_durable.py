"""The durable consumer in NATS, created at the stored mark.

Guarantee: the state in NATS never decides what is handled. A consumer begins right after the mark.
A consumer that has acknowledged records which this service has not stored as handled (its database
was restored from a backup, or failed over and lost commits) is deleted and created again at the
mark.

Why the consumer is read before the mark: a process stores the mark first and then creates the
consumer. So a consumer without a mark, read in this order, belongs to another service.

On failure: a stream that ends before the mark is being rebuilt, and is waited for. A stream with
another record at the mark is another log: `Unusable`, because every sequence would be wrong.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from tocsin.client._mark_advance import DeliveryOrder, SelectedRecords, advance_mark
from tocsin.client._mark_store import Mark, OpenMarkStore, Unusable
from tocsin.client._start_position import Start, find_start, record_id
from tocsin.client._streams import API_TIMEOUT_S, RecordBus
from tocsin.client.delivery import Delivery
from tocsin.core.cancellation import cancellable
from tocsin.core.errors import Unreachable
from tocsin.core.nats_client import api_of

_log = logging.getLogger("tocsin.client")
_STREAM_TIMEOUT_S = 10.0
_POLL_S = 0.2
_LOG_AGAIN_S = 30.0
_WORKERS = "tocsin workers"
# The group of a consumer that gives its records to one process at a time, and how long that process
# keeps them without a request. A request is open for at most five seconds.
GROUP = "batches"
_UNPIN_S = 6.0


async def wait_for_stream(bus: RecordBus, *, is_first: bool) -> StreamInfo:
    """Wait until the record stream exists.

    On a new installation the publisher creates it a moment later. After the first start there is no
    time limit.
    """
    js = bus.client.jetstream(timeout=API_TIMEOUT_S)
    give_up_s = time.monotonic() + _STREAM_TIMEOUT_S
    while True:
        try:
            return await cancellable(js.stream_info(bus.stream))
        except NotFoundError:
            if is_first and time.monotonic() > give_up_s:
                raise Unreachable(
                    f"the stream {bus.stream!r} does not exist",
                    remedy=f"run `tocsin streams create` or `tocsin run cdc`, which create it, and check that "
                    f"{bus.namespace!r} is the namespace of your tocsin",
                ) from None
        await asyncio.sleep(_POLL_S)


class DurableConsumer:
    """The consumer `name`. With `batch`, one process at a time gets records, up to that many."""

    def __init__(
        self,
        bus: RecordBus,
        name: str,
        subjects: list[str],
        delivery: Delivery,
        batch: int | None = None,
    ) -> None:
        self._bus = bus
        self._js: JetStreamContext = bus.client.jetstream(timeout=API_TIMEOUT_S)
        self._stream = bus.stream
        self._name = name
        self._subjects = subjects
        self._delivery = delivery
        self._batch = batch
        self.order = DeliveryOrder()

    async def ensure(self, store: OpenMarkStore, start: Start, *, is_first: bool) -> None:
        self.order.begin()
        stream = await wait_for_stream(self._bus, is_first=is_first)
        existing = await self._info()
        if existing is not None:
            self._refuse_foreign(existing.config)
        mark = await store.mark()
        if mark is None:
            # An operator may have created a consumer that has delivered nothing yet.
            if (
                existing is not None
                and existing.delivered is not None
                and existing.delivered.consumer_seq > 0
            ):
                raise Unusable(
                    f"the consumer {self._name!r} is in use in nats, and this service has no mark for it",
                    remedy="choose another name if another service uses this one, or remove it with "
                    f"`nats consumer rm {self._stream} {self._name}`",
                )
            mark = await store.begin(await find_start(self._js, self._stream, start))
        await self._check_same_log(mark)
        self._log_lost_records(mark, int(stream.state.first_seq))
        if existing is not None and (missing := await self._advance_mark(existing, store)) is not None:
            mark = await store.mark() or mark
            _log.warning(
                "consumer %s: nats has an acknowledgement of record %s, which is not handled here (did the "
                "database fail over, or was it restored?); starting again after %s",
                *(self._name, missing, mark.seq),
            )
            await self._js.delete_consumer(self._stream, self._name)
            existing = None
        await self._make(mark, existing)

    async def unpin(self) -> None:
        """Let another process get the records at once, and not only when the pin expires."""
        request = f"{api_of(self._bus.client)}.CONSUMER.UNPIN.{self._stream}.{self._name}"
        client = self._bus.client
        await client.publish(request, json.dumps({"group": GROUP}).encode(), reply=client.new_inbox())

    async def advance_mark(self, store: OpenMarkStore) -> int | None:
        """Move the mark to where NATS has everything acknowledged.

        Returns the first acknowledged record that is not handled. Only handled records are
        acknowledged, so the database has lost it.
        """
        info = await self._js.consumer_info(self._stream, self._name)
        return await self._advance_mark(info, store)

    async def _advance_mark(self, info: ConsumerInfo, store: OpenMarkStore) -> int | None:
        acknowledged = info.ack_floor.stream_seq if info.ack_floor else 0
        missing = await advance_mark(self.selected(), acknowledged, store)
        self.order.forget_before(acknowledged if missing is None else missing)
        return missing

    def selected(self) -> SelectedRecords:
        return SelectedRecords(self._js, self._stream, self._subjects, self.order)

    async def _info(self) -> ConsumerInfo | None:
        request = f"{api_of(self._bus.client)}.CONSUMER.INFO.{self._stream}.{self._name}"
        answer = json.loads((await self._bus.client.request(request, timeout=API_TIMEOUT_S)).data)
        if "error" in answer:
            with suppress(NotFoundError):
                APIError.from_error(answer["error"])
            return None
        config = _PinnableConfig.from_response(dict(answer["config"]))
        info: ConsumerInfo = replace(ConsumerInfo.from_response(answer), config=config)
        return info

    async def _check_same_log(self, mark: Mark) -> None:
        logged_s = 0.0
        while (last := await self._last()) < mark.seq:
            if time.monotonic() - logged_s > _LOG_AGAIN_S:
                logged_s = time.monotonic()
                _log.warning(
                    "consumer %s: the stream %s ends at %s, but %s is handled; waiting until it is rebuilt "
                    "(for a new log, give the consumer a new name)",
                    *(self._name, self._stream, last, mark.seq),
                )
            await asyncio.sleep(_POLL_S)
        stored_id = await record_id(self._js, self._stream, mark.seq)
        if mark.id is not None and stored_id is not None and stored_id != mark.id:
            raise Unusable(
                f"the stream {self._stream!r} has the record {stored_id} at {mark.seq}, but {self._name!r} has "
                f"handled {mark.id} there: this is another log",
                remedy="give the consumer a new name, or delete its mark",
            )

    def _log_lost_records(self, mark: Mark, first: int) -> None:
        if first > mark.seq + 1:
            _log.error(
                "consumer %s: records %s to %s are no longer in the stream %s and were never handled, because it "
                "was stopped for longer than the stream keeps records; read them from the database",
                *(self._name, mark.seq + 1, first - 1, self._stream),
            )

    async def _last(self) -> int:
        return int((await cancellable(self._js.stream_info(self._stream))).state.last_seq)

    async def _make(self, mark: Mark, existing: ConsumerInfo | None) -> None:
        wanted = _PinnableConfig(
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
            max_ack_pending=self._batch or self._delivery.most_pending,
            priority_groups=[GROUP] if self._batch else None,
            priority_policy="pinned_client" if self._batch else None,
            priority_timeout=int(_UNPIN_S * 1e9) if self._batch else None,
        )
        if existing is not None:
            # The start of an existing consumer cannot be changed, and need not be.
            wanted = replace(
                wanted,
                description=existing.config.description,
                deliver_policy=existing.config.deliver_policy,
                opt_start_seq=existing.config.opt_start_seq,
                opt_start_time=existing.config.opt_start_time,
            )
            if all(getattr(existing.config, name) == getattr(wanted, name) for name in _COMPARED):
                return
        await self._js.add_consumer(self._stream, wanted)

    def _refuse_foreign(self, config: ConsumerConfig) -> None:
        if (config.description or "").startswith(_WORKERS):
            raise Unusable(
                f"the consumer {self._name!r} belongs to tocsin itself", remedy="choose another name"
            )
        if config.deliver_subject is not None or config.ack_policy != AckPolicy.EXPLICIT:
            raise Unusable(
                f"the consumer {self._name!r} exists in nats and is not a pull consumer with explicit "
                "acknowledgements",
                remedy=f"choose another name, or remove it with `nats consumer rm {self._stream} {self._name}`",
            )


@dataclass
class _PinnableConfig(ConsumerConfig):
    """nats-py does not know these fields of NATS 2.11."""

    priority_groups: list[str] | None = None
    priority_policy: str | None = None
    priority_timeout: int | None = None


_COMPARED = (
    "filter_subject",
    "filter_subjects",
    "ack_wait",
    "max_deliver",
    "max_ack_pending",
    "priority_policy",
)
