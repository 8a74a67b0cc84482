"""Follows the record stream live, with a consumer that is created again after any outage.

Guarantee: messages arrive in the order of their sequence, each once, without a gap. The position is
kept here and not in the consumer. A lost consumer (a restart of NATS, an idle hour) is created
again right after the last message seen. A stream that does not exist yet is waited for.

Messages that the server sent to a connection that died are lost: the consumer has no
acknowledgements and continues behind them. The consumer's own sequence shows the gap, and the
consumer is created again.

Why a pull consumer: the first message is requested alone, so that it is shown at once. The messages
pending behind it are fetched together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from nats.js.errors import APIError, NotFoundError

from tocsin.core.cancellation import cancellable
from tocsin.core.temporary_consumer import create_temporary_consumer, delete_temporary_consumer

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js.client import JetStreamContext

_WAIT_S = 2.0
_BATCH = 200
_IDLE_S = 30.0
_RETRY_S = 0.1


async def follow(
    bus: Client, stream: str, after: int, subjects: Sequence[str] = (">",)
) -> AsyncGenerator[Msg, None]:
    """Yield the messages after the sequence `after`, without end."""
    while True:
        try:
            name = await cancellable(_create(bus, stream, after, subjects))
            js = bus.jetstream(timeout=_WAIT_S)
            subscription = await cancellable(js.pull_subscribe_bind(consumer=name, stream=stream))
        except (NatsError, OSError, TimeoutError):
            await asyncio.sleep(_RETRY_S)
            continue
        try:
            async for message in _messages(subscription):
                after = message.metadata.sequence.stream
                yield message
        except (NatsError, OSError, TimeoutError):
            await asyncio.sleep(_RETRY_S)
        finally:
            with suppress(NatsError, OSError, TimeoutError):
                await subscription.unsubscribe()
            await delete_temporary_consumer(bus, stream, name)


async def last_sequence_of(bus: Client, stream: str) -> int:
    """The last sequence of the stream; 0 if it does not exist yet."""
    try:
        return int((await bus.jetstream(timeout=_WAIT_S).stream_info(stream)).state.last_seq)
    except NotFoundError:
        return 0


async def _create(bus: Client, stream: str, after: int, subjects: Sequence[str]) -> str:
    """Create a consumer and return its name."""
    config = {
        "filter_subjects": list(subjects),
        "ack_policy": "none",
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": after + 1,
        "inactive_threshold": int(_IDLE_S * 10**9),
        "mem_storage": True,
        "num_replicas": 1,
    }
    created = await create_temporary_consumer(bus, stream, config, _WAIT_S)
    if "error" in created:
        APIError.from_error(created["error"])
    return str(created["name"])


async def _messages(subscription: JetStreamContext.PullSubscription) -> AsyncIterator[Msg]:
    """The messages of one consumer. Ends where one of them is missing."""
    pending = 1
    delivered = 0
    while True:
        try:
            batch = await cancellable(subscription.fetch(min(max(pending, 1), _BATCH), timeout=_WAIT_S))
        except NatsTimeout:
            # No message is ordinary, but a lost consumer looks the same, and so does a lost message
            # that none follows. This request tells them apart.
            info = await cancellable(subscription.consumer_info())
            if info.delivered is not None and info.delivered.consumer_seq > delivered:
                return
            pending = 1
            continue
        for message in batch:
            if message.metadata.sequence.consumer != delivered + 1:
                return
            delivered += 1
            yield message
        pending = batch[-1].metadata.num_pending
