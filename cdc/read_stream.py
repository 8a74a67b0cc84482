"""Reads a range of the stream in order, in bounded memory.

Guarantee: messages `first` to `last` of the stream, each once, in order; missing ones are left out.
The consumer is temporary, and the server removes it when the reader is gone.

On failure: `ConsumerGone` if the stream is removed meanwhile, `Unreachable` if NATS stops sending
or if messages were lost with a connection. The consumer has no acknowledgements and continues
behind those; its own sequence shows the gap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from nats.aio.client import Client
from nats.js.errors import APIError

from cdc.compare import StoredMessage
from tocsin.core.errors import Unreachable
from tocsin.core.pull import Puller
from tocsin.core.temporary_consumer import create_temporary_consumer, delete_temporary_consumer

_BATCH = 500
_TIMEOUT_S = 5.0
_IDLE_S = 60.0


async def read_messages(bus: Client, stream: str, first: int, last: int) -> AsyncIterator[StoredMessage]:
    config = {
        "ack_policy": "none",
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": first,
        "inactive_threshold": int(_IDLE_S * 10**9),
        "mem_storage": True,
        "num_replicas": 1,
    }
    created = await create_temporary_consumer(bus, stream, config, _TIMEOUT_S)
    if "error" in created:
        APIError.from_error(created["error"])
    puller = await Puller.open(bus, stream, created["name"], _BATCH)
    try:
        if created["num_pending"]:
            async for message in _read(puller, stream, last):
                yield message
    finally:
        await puller.close()
        await delete_temporary_consumer(bus, stream, created["name"])


async def _read(puller: Puller, stream: str, last: int) -> AsyncIterator[StoredMessage]:
    delivered = 0
    while True:
        batch = await puller.next_batch(_TIMEOUT_S)
        if not batch:
            raise Unreachable(f"nats stopped sending the stream {stream!r}", remedy="try again")
        for message in batch:
            seq = message.metadata.sequence.stream
            delivered += 1
            if message.metadata.sequence.consumer != delivered:
                raise Unreachable(
                    f"the connection to nats lost messages of the stream {stream!r} before {seq}",
                    remedy="try again",
                )
            if seq <= last:
                yield StoredMessage(seq, message.subject, message.data)
            if seq >= last or message.metadata.num_pending == 0:
                return
