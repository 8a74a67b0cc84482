"""`replay`: reads records from a place in the stream, without leaving anything behind in NATS.

Guarantee: the selected records in the order of their sequence, each once, without a hole, up to the one that
was the last when it began; or on and on with `follow=True`, also over restarts of NATS. Nothing is acknowledged
and nothing is kept: where to go on is the caller's to remember (`record.seq + 1`).

On failure: `Unreachable` if the stream is not there at the beginning. A body that is none of ours is left out
and logged.
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

from tocsin.client._follow import follow as follow_stream
from tocsin.client._start_position import Start, check_start, find_start
from tocsin.client.durable import wait_for_stream
from tocsin.client.select import Select, Unreadable
from tocsin.client.streams import API_TIMEOUT_S, Bus, connected
from tocsin.core.cancellation import cancellable
from tocsin.core.errors import InvalidInput

_log = logging.getLogger("tocsin.client")
R = TypeVar("R")


async def replay(
    select: Select[R],
    *,
    start: Start = "beginning",
    follow: bool = False,
    nats: str | Client | None = None,
) -> AsyncGenerator[R, None]:
    """The selected records from `start` on: "beginning", "new", an aware datetime (of their commit), or a sequence."""
    if not isinstance(select, Select):
        raise InvalidInput(
            f"{select!r} selects no records",
            remedy="give Events(), Steps(), Verdicts(), Tombstones() or Records()",
        )
    check_start(start)
    async with connected(nats, select.namespace, "replay") as bus:
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
                    _log.error("record %s is left out: %s", seq, error)
                if not follow and seq == last:
                    return


async def _range(bus: Bus, subjects: list[str], start: Start) -> tuple[int, int]:
    """What to read after, and the last of ours there is (0: none)."""
    js = bus.client.jetstream(timeout=API_TIMEOUT_S)
    try:
        await wait_for_stream(bus, is_first=True)
        after = (await find_start(js, bus.stream, start)).seq
        return after, max([await _last_of(js, bus.stream, subject) for subject in subjects])
    except (NatsError, TimeoutError) as error:
        raise bus.silent("reading the stream", error) from error


async def _last_of(js: JetStreamContext, stream: str, subject: str) -> int:
    with suppress(NotFoundError):
        return int((await js.get_last_msg(stream, subject)).seq or 0)
    return 0
