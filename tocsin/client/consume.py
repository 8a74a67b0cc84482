"""`consume` and `consume_batches`: hand the records of the stream to a service, each once.

Guarantee: a record is acknowledged only after its handling is stored (see `Inbox`, `KvMark`), was
found to be stored, or its dead letter is stored. So whichever process dies, no record is lost, and
a handled record is not handled again: neither after a redelivery nor from a rebuilt stream.

Why no record is fetched in advance: a record is requested when it can be started at once. So its
delivery count is the number of attempts that began, including those of processes that died.

On failure: an outage of NATS or of the store is waited out and does not count as an attempt. A
failing handler is called again after a pause that doubles. A stop or a cancellation lets running
handlers finish and returns the other records.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar, overload

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import StreamConfig

from tocsin.client._batch_loop import BatchLoop
from tocsin.client._consumer_loop import ConsumerLoop
from tocsin.client._dead_letters import dead_stream
from tocsin.client._durable import DurableConsumer, wait_for_stream
from tocsin.client._mark_store import ConsumerContext, MarkStore, OpenMarkStore
from tocsin.client._start_position import Start, check_start
from tocsin.client._streams import RecordBus, create_missing, open_record_bus
from tocsin.client.delivery import Delivery
from tocsin.client.inbox import Inbox
from tocsin.client.kv_mark import KvMark, mark_bucket
from tocsin.client.select import Select, check_select
from tocsin.core.cancellation import cancellable
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
R = TypeVar("R")


@overload
async def consume(
    select: Select[R],
    handle: Callable[[R, Connection], Awaitable[None]],
    *,
    consumer: str,
    keep: Inbox,
    start: Start = "new",
    delivery: Delivery = ...,
    nats: str | Client | None = None,
    stop: asyncio.Event | None = None,
) -> None: ...


@overload
async def consume(
    select: Select[R],
    handle: Callable[[R], Awaitable[None]],
    *,
    consumer: str,
    keep: KvMark,
    start: Start = "new",
    delivery: Delivery = ...,
    nats: str | Client | None = None,
    stop: asyncio.Event | None = None,
) -> None: ...


async def consume(
    select: Select[R],
    handle: Callable[..., Awaitable[None]],
    *,
    consumer: str,
    keep: Inbox | KvMark,
    start: Start = "new",
    delivery: Delivery = Delivery(),  # noqa: B008
    nats: str | Client | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Handle the selected records, each once, until `stop` is set or this is cancelled.

    `consumer` is the permanent name of this use of the stream. Processes with the same name share
    the work. `start` is used only when the name is new. `handle` gets the record, and with an
    `Inbox` also the connection of the transaction that commits its handling. `nats` is a URL, a
    connected client, or None for TOCSIN_NATS.
    """
    _check(select, handle, consumer, keep, delivery)
    check_start(start)

    async def open_loop(
        bus: RecordBus, context: ConsumerContext, resources: AsyncExitStack
    ) -> ConsumerLoop[R]:
        store: OpenMarkStore = await resources.enter_async_context(keep.open(context))
        durable = DurableConsumer(bus, consumer, select.subjects(bus.prefix), delivery)
        return ConsumerLoop(bus, context, select, handle, durable, store)

    await _consume(select, consumer, delivery, start, nats, stop, open_loop)


async def consume_batches(
    select: Select[R],
    handle: Callable[[list[R], Connection], Awaitable[None]],
    *,
    consumer: str,
    keep: Inbox,
    start: Start = "new",
    delivery: Delivery = Delivery(),  # noqa: B008
    nats: str | Client | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """As `consume`, with up to `delivery.batch` records in one call and one transaction, in order.

    `handle` gets the records in the order of their sequence. If it raises, the batch is halved
    until the failing record is alone: only that record is tried again, and ends as a dead letter.
    The time limit of `delivery` is that of one call. Of several processes with the same name, one
    gets records, and another takes over when that one ends.
    """
    _check(select, handle, consumer, keep, delivery)
    _check_batch(keep, delivery)
    check_start(start)

    async def open_loop(
        bus: RecordBus, context: ConsumerContext, resources: AsyncExitStack
    ) -> ConsumerLoop[R]:
        inbox = await resources.enter_async_context(keep.open(context))
        durable = DurableConsumer(bus, consumer, select.subjects(bus.prefix), delivery, delivery.batch)
        return BatchLoop(bus, context, select, handle, durable, inbox)

    await _consume(select, consumer, delivery, start, nats, stop, open_loop)


async def _consume(
    select: Select[R],
    consumer: str,
    delivery: Delivery,
    start: Start,
    nats: str | Client | None,
    stop: asyncio.Event | None,
    open_loop: Callable[[RecordBus, ConsumerContext, AsyncExitStack], Awaitable[ConsumerLoop[R]]],
) -> None:
    async with open_record_bus(nats, select.namespace, f"consume {consumer}") as bus:
        try:
            async with AsyncExitStack() as resources:

                async def prepare_loop() -> ConsumerLoop[R]:
                    info = await wait_for_stream(bus, is_first=True)
                    replicas = int(info.config.num_replicas or 1)
                    await create_missing(bus.client, dead_stream(bus.namespace, replicas))
                    context = ConsumerContext(bus.client, bus.namespace, consumer, replicas, delivery)
                    loop = await open_loop(bus, context, resources)
                    await loop.prepare(start)
                    return loop

                # A client or pool of the service can swallow a cancellation.
                loop = await cancellable(prepare_loop())
                await cancellable(loop.run(stop))
        except (NatsError, TimeoutError) as error:
            raise bus.no_answer(f"the consumer {consumer!r}", error) from error


async def prepare(*, nats: str | Client | None = None, namespace: str | None = None) -> None:
    """Create the streams of consumers other than the record stream, with the rights of an operator.

    Consumers themselves may lack these rights.
    """
    async with open_record_bus(nats, namespace, "prepare") as bus:
        try:
            replicas = int((await wait_for_stream(bus, is_first=True)).config.num_replicas or 1)
            for stream in consumer_streams(bus.namespace, replicas):
                await create_missing(bus.client, stream)
        except (NatsError, TimeoutError) as error:
            raise bus.no_answer("creating the streams of consumers", error) from error


def consumer_streams(namespace: str, replicas: int) -> tuple[StreamConfig, ...]:
    """The streams that consumers need besides the record stream: dead letters and marks."""
    return dead_stream(namespace, replicas), mark_bucket(namespace, replicas)


def _check(select: object, handle: object, consumer: object, keep: Any, delivery: object) -> None:
    check_select(select)
    if not isinstance(consumer, str) or not _NAME.fullmatch(consumer):
        raise InvalidInput(
            f"consumer={consumer!r} is not a name",
            remedy="use 1 to 64 letters, digits, '-' and '_', as in 'billing'",
        )
    if not isinstance(keep, Inbox | KvMark):
        raise InvalidInput(f"keep={keep!r}", remedy="give Inbox(...) or KvMark()")
    if not isinstance(delivery, Delivery):
        raise InvalidInput(f"delivery={delivery!r}", remedy="give Delivery(...)")
    if keep.in_order_only and delivery.concurrency > 1:
        raise InvalidInput(
            f"concurrency={delivery.concurrency} is not possible with KvMark, which stores one sequence for all "
            "records before it",
            remedy="use an Inbox, or leave the concurrency at 1",
        )
    _check_handler(handle, keep)


def _check_batch(keep: object, delivery: Delivery) -> None:
    if not isinstance(keep, Inbox):
        raise InvalidInput(
            f"keep={keep!r} has no transaction for a batch", remedy="use an Inbox, or consume single records"
        )
    if delivery.concurrency > 1:
        raise InvalidInput(
            f"concurrency={delivery.concurrency} is not possible with batches, which are handled in order",
            remedy="leave the concurrency at 1, or use `consume`",
        )


def _check_handler(handle: object, keep: MarkStore) -> None:
    arguments = ("record", "connection") if isinstance(keep, Inbox) else ("record",)
    if not callable(handle):
        raise InvalidInput(f"handle={handle!r} cannot be called", remedy="give an async function")
    try:
        inspect.signature(handle).bind(*arguments)
    except TypeError:
        raise InvalidInput(
            f"handle is called as handle({', '.join(arguments)}) with {type(keep).__name__}, and "
            f"{getattr(handle, '__qualname__', handle)}{inspect.signature(handle)} does not take that"
        ) from None
    except ValueError:  # a built-in without a signature
        return
