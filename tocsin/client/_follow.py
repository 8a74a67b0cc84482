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
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from tocsin.core.cancellation import cancellable

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
    js = bus.jetstream(timeout=_WAIT_S)
    while True:
        try:
            subscription = await cancellable(_subscribe(js, stream, after, subjects))
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


async def last_sequence_of(bus: Client, stream: str) -> int:
    """The last sequence of the stream; 0 if it does not exist yet."""
    try:
        return int((await bus.jetstream(timeout=_WAIT_S).stream_info(stream)).state.last_seq)
    except NotFoundError:
        return 0


async def _subscribe(
    js: JetStreamContext, stream: str, after: int, subjects: Sequence[str]
) -> JetStreamContext.PullSubscription:
    return await js.pull_subscribe(
        subjects[0],
        stream=stream,
        config=ConsumerConfig(
            filter_subjects=list(subjects) if len(subjects) > 1 else None,
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            inactive_threshold=_IDLE_S,
            mem_storage=True,
            num_replicas=1,
        ),
    )


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
