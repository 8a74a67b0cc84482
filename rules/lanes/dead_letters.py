"""Dead letters: what could not be taken, kept in a stream of its own for the person who sent it.

Guarantee: a letter is in the stream before what was set aside is passed over, so nothing disappears silently. It
may be there twice after a crash; `identity` makes the server drop the second one for a while.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

from nats.js.api import StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from rules.metrics import DEAD_LETTERS
from schemas.wire.dead_letter import DeadLetter
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure, find, stream_config

_ACK_S = 5
# A producer that sends nothing but rubbish must not fill the disk.
_MOST = 100_000


def dead_stream_config(settings: Settings) -> StreamConfig:
    return stream_config(
        settings.dead_stream,
        [f"{settings.subjects}.dead.>"],
        settings.stream_replicas,
        description="messages that tocsin rejected, with the reason",
        max_msgs=_MOST,
        max_age=timedelta(hours=settings.stream_max_age_h).total_seconds(),
    )


async def ensure_dead_letters(js: JetStreamContext, settings: Settings) -> None:
    await ensure(js, dead_stream_config(settings))


async def send_dead_letter(
    js: JetStreamContext, settings: Settings, kind: str, letter: DeadLetter, identity: str
) -> None:
    await js.publish(
        f"{settings.subjects}.dead.{kind}",
        letter.model_dump_json().encode(),
        timeout=_ACK_S,
        headers={"Nats-Msg-Id": identity},
        stream=settings.dead_stream,
    )
    DEAD_LETTERS.add(1, kind)


async def count_dead_letters(js: JetStreamContext, settings: Settings) -> dict[str, int]:
    """By kind, those that are still kept."""
    info = await find(js, settings.dead_stream, ">")
    counts = info.state.subjects or {} if info else {}
    return {subject.rpartition(".")[2]: count for subject, count in sorted(counts.items())}


async def read_dead_letters(
    js: JetStreamContext, settings: Settings, kind: str | None, limit: int
) -> list[dict[str, Any]]:
    """The newest first, with their place in the stream and their kind."""
    info = await find(js, settings.dead_stream)
    found: list[dict[str, Any]] = []
    seq = info.state.last_seq if info else 0
    while info and seq >= max(1, info.state.first_seq) and len(found) < limit:
        with suppress(NotFoundError):
            message = await js.get_msg(settings.dead_stream, seq)
            of = (message.subject or "").rpartition(".")[2]
            if kind in (None, of):
                found.append({"seq": seq, "kind": of, **json.loads(message.data or b"{}")})
        seq -= 1
    return found
