"""Deletes the stream and publishes it again from the log, with the same sequences.

Guarantee: nothing is deleted unless everything that the log still has can be published again: a
stream that has more than the log, and a log with a hole, are rejected first. The new stream begins
at the first seq that the log has.

Durable consumers are deleted with the stream. Workers create theirs again, and a consumer that
remembers its last sequence continues there, because sequences mean the same as before.

On failure half-way: any publisher continues, as after a loss of the stream. A publisher that runs
meanwhile shares the work: the stream takes each message once, whichever process sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from cdc.adopt import find_loss
from cdc.chain import Chain, ChainBroken
from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from cdc.stream import ensure_stream, find_stream
from tocsin.core.audit import Actor, record_audit
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class RebuildPlan:
    first: int
    last: int
    messages: int
    """Messages that the stream has now; 0 if there is none."""
    consumers: tuple[str, ...]
    """Durable consumers, which are deleted with the stream."""
    missing: int
    """Sequences of recorded gaps, which tombstones will fill."""


async def plan_rebuild(bus: Client, settings: Settings, reader: LogReader) -> RebuildPlan:
    js = bus.jetstream(timeout=_TIMEOUT_S)
    loss = await find_loss(js, settings, reader)
    if loss is not None:
        what = (
            f"the log lacks {loss.first} to {loss.last}, which therefore cannot be published again"
            if not loss.stream_differs
            else f"the stream has other records than the log at {loss.first} to {loss.last}, and consumers may "
            "have read them"
        )
        raise Refused(
            what, remedy="restore it from a backup, or accept the loss with `tocsin cdc adopt` first"
        )
    info = await find_stream(js, settings)
    horizon = await reader.horizon()
    return RebuildPlan(
        horizon,
        await reader.head(),
        messages=int(info.state.messages) if info else 0,
        consumers=await _durable_consumers(js, settings) if info else (),
        missing=sum(
            gap.until_seq - gap.from_seq + 1 for gap in await reader.gaps() if gap.from_seq > horizon
        ),
    )


async def rebuild(
    bus: Client, settings: Settings, reader: LogReader, actor: Actor, progress: Callable[[int], None]
) -> int:
    """Rebuild the stream and return its last sequence.

    `progress` gets the position after each chunk.
    """
    js = bus.jetstream(timeout=_TIMEOUT_S)
    if await find_stream(js, settings) is not None:
        await js.delete_stream(settings.stream)
    await ensure_stream(js, settings, await reader.horizon())
    await _record(reader, settings, actor)
    return await _publish(bus, js, settings, reader, progress)


async def _durable_consumers(js: JetStreamContext, settings: Settings) -> tuple[str, ...]:
    try:
        consumers = await js.consumers_info(settings.stream)
    except NotFoundError:
        return ()
    return tuple(sorted(info.name for info in consumers if info.config.durable_name))


async def _record(reader: LogReader, settings: Settings, actor: Actor) -> None:
    async with reader.connection.transaction():
        new = {"first_seq": await reader.horizon()}
        await record_audit(reader.connection, actor, "rebuild", "stream", settings.stream, new=new)
        payload = {"who": actor.who, "via": actor.via}
        await append_events(reader.connection, [NewEvent(actor.now, "caused", "stream-rebuilt", payload)])


async def _publish(
    bus: Client, js: JetStreamContext, settings: Settings, reader: LogReader, progress: Callable[[int], None]
) -> int:
    publisher = Publisher(settings)
    chain = await Chain.open(bus, settings.subjects, settings.source)
    await publisher.resume(js, reader)
    while True:
        try:
            if not await publisher.publish_next(chain, reader):
                return publisher.position
        except ChainBroken:
            await publisher.resume(js, reader)
        progress(publisher.position)
