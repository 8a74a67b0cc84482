"""`consume`: hands the records of the stream to a service, each once.

Guarantee: a record is acknowledged only when its handling is kept (see `Inbox`, `KvMark`), was found to be
kept, or its dead letter is stored. So whatever dies, nothing is lost, and what was handled is not handled
again: not after a redelivery, and not from a stream that was made anew.

Why nothing is fetched in advance: a record is asked for when there is room to begin it at once. So the number
of its deliveries is the number of times that it was begun, also by processes that died over it.

On failure: an outage of NATS or of what is kept is waited out, without counting as an attempt. A failing
handler is called again after a pause that doubles. A stop, or a cancellation, lets the handlers at work finish
and gives the rest back.
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

from tocsin.client._consumer_loop import Consumption
from tocsin.client._inbox_protocol import Keep, Kept, Place
from tocsin.client._start_position import Start, check_start
from tocsin.client.dead_letters import dead_stream
from tocsin.client.delivery import Delivery
from tocsin.client.durable import Durable, wait_for_stream
from tocsin.client.inbox import Inbox
from tocsin.client.kv_mark import KvMark, mark_bucket
from tocsin.client.select import Select
from tocsin.client.streams import connected, made
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

    `consumer` names this use of the stream for ever; processes with the same name share the work. `start` counts only
    when the name is new. `handle` gets the record, and with an `Inbox` the connection of the transaction that its
    handling commits in. `nats` is a URL, a client of your own, or TOCSIN_NATS.
    """
    _check(select, handle, consumer, keep, delivery)
    check_start(start)
    async with connected(nats, select.namespace, f"consume {consumer}") as bus:
        try:
            async with AsyncExitStack() as opened:

                async def prepared() -> Consumption[R]:
                    info = await wait_for_stream(bus, is_first=True)
                    replicas = int(info.config.num_replicas or 1)
                    await made(bus.client, dead_stream(bus.namespace, replicas))
                    place = Place(bus.client, bus.namespace, consumer, replicas, delivery)
                    kept: Kept = await opened.enter_async_context(keep.opened(place))
                    durable = Durable(bus, consumer, select.subjects(bus.prefix), delivery)
                    consumption = Consumption(bus, place, select, handle, durable, kept)
                    await consumption.prepare(start)
                    return consumption

                # The client and the pool may be the service's own, which can swallow a cancellation.
                consumption = await cancellable(prepared())
                await cancellable(consumption.run(stop))
        except (NatsError, TimeoutError) as error:
            raise bus.silent(f"the consumer {consumer!r}", error) from error


async def prepare(*, nats: str | Client | None = None, namespace: str | None = None) -> None:
    """Make what consumers need beside the record stream, with the rights of an operator: consumers may lack them."""
    async with connected(nats, namespace, "prepare") as bus:
        try:
            replicas = int((await wait_for_stream(bus, is_first=True)).config.num_replicas or 1)
            await made(bus.client, dead_stream(bus.namespace, replicas))
            await made(bus.client, mark_bucket(bus.namespace, replicas))
        except (NatsError, TimeoutError) as error:
            raise bus.silent("making the streams of consumers", error) from error


def _check(select: object, handle: object, consumer: object, keep: Any, delivery: object) -> None:
    if not isinstance(select, Select):
        raise InvalidInput(
            f"{select!r} selects no records",
            remedy="give Events(), Steps(), Verdicts(), Tombstones() or Records()",
        )
    if not isinstance(consumer, str) or not _NAME.fullmatch(consumer):
        raise InvalidInput(
            f"consumer={consumer!r} is no name",
            remedy="use 1 to 64 letters, digits, '-' and '_', as in 'billing'",
        )
    if not isinstance(keep, Inbox | KvMark):
        raise InvalidInput(f"keep={keep!r}", remedy="give Inbox(...) or KvMark()")
    if not isinstance(delivery, Delivery):
        raise InvalidInput(f"delivery={delivery!r}", remedy="give Delivery(...)")
    if keep.in_order_only and delivery.concurrency > 1:
        raise InvalidInput(
            f"concurrency={delivery.concurrency} does not go with KvMark, which keeps one sequence for all "
            "before it",
            remedy="use an Inbox, or leave the concurrency at 1",
        )
    _check_handler(handle, keep)


def _check_handler(handle: object, keep: Keep) -> None:
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
