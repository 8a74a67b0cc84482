"""Sends what a request contains to JetStream, and its rejected parts to the dead letters.

Guarantee: `send_datapoints` and `send_events` return when JetStream has stored everything. Datapoints of
one owner arrive in the order of the request. A request that a client repeats within two minutes, because
it got no answer, is stored once if all its values have a time of their own.

Dead letters of kind `request` hold the reasons and no body: a client whose requests are all rejected
sends them again and again. One is kept per caller and first reason in a minute.

On failure: `Unreachable`, which is 503.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from nats.errors import Error as NatsError

from rules.lanes.dead_letters import send_dead_letter
from rules.lanes.put_back import REQUEST
from schemas.wire.datapoint import MAX_BYTES
from schemas.wire.dead_letter import dead_letter
from schemas.wire.ingest_event import IngestEvent
from schemas.wire.subjects import datapoint_subject, ingest_subject
from timers.working_set import database_now
from tocsin.api.access.permission import Access
from tocsin.api.context import ApiContext
from tocsin.core.errors import Unreachable
from tocsin.core.instant import instant_text
from tocsin.protocols.placement import Placed

_MAX_BATCH = 500
_ENVELOPE = 1024
_ACK_S = 5.0
_AT_ONCE = 32
_SHOWN_PROBLEMS = 20
_SHOWN_LENGTH = 300
_LETTER_EVERY_S = 60.0
_MAX_LETTERS = 10_000


async def send_datapoints(context: ApiContext, placed: Sequence[Placed], body: bytes) -> None:
    """Send datapoints, each owner's in their order."""
    bus = await context.bus()
    space = min(MAX_BYTES, bus.max_payload) - _ENVELOPE
    identity = _identity(placed, body)
    permits = asyncio.Semaphore(_AT_ONCE)

    async def send_owner(owner: str, entries: Sequence[bytes]) -> None:
        subject = datapoint_subject(context.settings.subjects, owner, "")
        async with permits:
            for number, batch in enumerate(_batches(entries, space)):
                message = b'{"batch":[' + b",".join(batch) + b"]}"
                message_id = f"{identity}/{number}/{owner}".encode()
                await publish(
                    context,
                    subject,
                    message,
                    hashlib.sha256(message_id).hexdigest(),
                    context.settings.data_stream,
                )

    by_owner = groupby(sorted(placed, key=lambda one: one.owner), key=lambda one: one.owner)
    sending = [send_owner(owner, [_entry(one) for one in group]) for owner, group in by_owner]
    await asyncio.gather(*sending)


async def send_events(context: ApiContext, events: Sequence[IngestEvent]) -> None:
    subject = ingest_subject(context.settings.subjects)
    for event in events:
        body = event.model_dump_json(exclude_none=True).encode()
        await publish(context, subject, body, str(uuid.uuid4()), context.settings.ingest_stream)


async def publish(context: ApiContext, subject: str, body: bytes, identity: str, stream: str) -> None:
    """Publish one message and wait until JetStream has stored it. Raises `Unreachable`."""
    bus = await context.bus()
    try:
        await bus.jetstream(timeout=_ACK_S).publish(
            subject, body, stream=stream, headers={"Nats-Msg-Id": identity}
        )
    except (NatsError, OSError, TimeoutError) as error:
        raise Unreachable(
            f"nats does not acknowledge ({error or type(error).__name__})",
            remedy="send it again; if no worker has ever run, start `tocsin run worker`, which creates the streams",
        ) from None


class Rejections:
    """The dead letters of requests, limited per caller and reason."""

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def keep(self, access: Access, path: str, problems: Sequence[str]) -> None:
        """Keep the reasons. An outage of NATS does not make the request fail: the client has the reasons."""
        key = (access.caller.name, path, problems[0][:_SHOWN_LENGTH])
        now_s = time.monotonic()
        if now_s < self._sent.get(key, 0.0):
            return
        self._sent[key] = now_s + _LETTER_EVERY_S
        self._sent.move_to_end(key)
        while len(self._sent) > _MAX_LETTERS:
            self._sent.popitem(last=False)
        shown = [problem[:_SHOWN_LENGTH] for problem in problems[:_SHOWN_PROBLEMS]]
        body = json.dumps({"caller": access.caller.name, "problems": shown}, ensure_ascii=False).encode()
        reason = f"{len(problems)} parts of a request of {access.caller.name!r} were rejected: {shown[0]}"
        context = access.context
        async with access.session() as connection:
            at = await database_now(connection)
        letter = dead_letter(reason, f"POST {path}", at, body)
        try:
            js = (await context.bus()).jetstream(timeout=_ACK_S)
            await send_dead_letter(js, context.settings, REQUEST, letter, str(uuid.uuid4()))
        except (NatsError, OSError, TimeoutError, Unreachable):
            self._sent.pop(key, None)


def summary_of(problems: Sequence[str], limit: int = 5) -> str:
    """One line about the rejected parts, for the answer."""
    more = f"; and {len(problems) - limit} more" if len(problems) > limit else ""
    return "; ".join(problem[:_SHOWN_LENGTH] for problem in problems[:limit]) + more


def _identity(placed: Sequence[Placed], body: bytes) -> str:
    """The same for the same request, if its values say when they were measured."""
    if any(one.sample.ts is None for one in placed):
        return str(uuid.uuid4())
    return hashlib.sha256(body).hexdigest()


def _entry(placed: Placed) -> bytes:
    fields: dict[str, Any] = {"key": placed.key, "value": placed.sample.value}
    if placed.sample.ts is not None:
        fields["ts"] = instant_text(placed.sample.ts)
    if placed.sample.labels:
        fields["labels"] = placed.sample.labels
    return json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()


def _batches(entries: Sequence[bytes], space: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    left = space
    for entry in entries:
        if batch and (len(batch) == _MAX_BATCH or len(entry) + 1 > left):
            yield batch
            batch, left = [], space
        batch.append(entry)
        left -= len(entry) + 1
    yield batch
