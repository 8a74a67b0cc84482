"""`replay`: reads records from a position in the stream and leaves nothing behind in NATS.

Guarantee: the selected records in the order of their sequence, each once, without a gap, up to the
last one when it began, or without end with `follow=True`, also over restarts of NATS. Nothing is
acknowledged or stored: the caller remembers where to continue (`record.seq + 1`).

On failure: `Unreachable` if the stream does not exist at the start. A body that is not a record is
logged and skipped.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypeVar

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tocsin.client._durable import wait_for_stream
from tocsin.client._follow import follow as follow_stream
from tocsin.client._start_position import Start, check_start, find_start
from tocsin.client._streams import API_TIMEOUT_S, RecordBus, open_record_bus
from tocsin.client.select import Select, Unreadable, check_select
from tocsin.core.cancellation import cancellable

_log = logging.getLogger("tocsin.client")
R = TypeVar("R")


async def replay(
    select: Select[R],
    *,
    start: Start = "beginning",
    follow: bool = False,
    nats: str | Client | None = None,
) -> AsyncGenerator[R, None]:
    """Yield the selected records from `start` on.

    `start` is "beginning", "new", an aware datetime (compared with commit times) or a sequence.
    """
    check_select(select)
    check_start(start)
    async with open_record_bus(nats, select.namespace, "replay") as bus:
        subjects = select.subjects(bus.prefix)
        after, last = await cancellable(_range(bus, subjects, start))
        if not follow and last <= after:
            return
        async with aclosing(follow_stream(bus.client, bus.stream, after, subjects)) as messages:
            async for message in messages:
                seq = message.metadata.sequence.stream
                if not follow and seq > last:
                    return
                try:
                    yield select.read(message.subject, message.data)
                except Unreadable as error:
                    _log.error("record %s skipped: %s", seq, error)
                if not follow and seq == last:
                    return


async def _range(bus: RecordBus, subjects: list[str], start: Start) -> tuple[int, int]:
    """The sequence to read after, and the last selected one in the stream (0: none)."""
    js = bus.client.jetstream(timeout=API_TIMEOUT_S)
    try:
        await wait_for_stream(bus, is_first=True)
        after = (await find_start(js, bus.stream, start)).seq
        return after, max([await _last_of(js, bus.stream, subject) for subject in subjects])
    except (NatsError, TimeoutError) as error:
        raise bus.no_answer("reading the stream", error) from error


async def _last_of(js: JetStreamContext, stream: str, subject: str) -> int:
    with suppress(NotFoundError):
        return int((await js.get_last_msg(stream, subject)).seq or 0)
    return 0
