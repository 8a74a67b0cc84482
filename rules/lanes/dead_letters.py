"""Dead letters: rejected messages, kept in a stream of their own with the reason.

Guarantee: a dead letter is in the stream before the position moves behind the message, so no
message disappears without a trace. After a crash it may be there twice; within the server's
duplicate window, `identity` prevents that.
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
# A producer that sends only invalid messages must not fill the disk. Not bounded by bytes: JetStream
# reserves `max_bytes` of a stream, and a server with less free space would reject the stream.
_MAX_LETTERS = 100_000


def dead_stream_config(settings: Settings) -> StreamConfig:
    return stream_config(
        settings.dead_stream,
        [f"{settings.subjects}.dead.>"],
        settings.stream_replicas,
        description="messages that tocsin rejected, with the reason",
        max_msgs=_MAX_LETTERS,
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
    """The number of dead letters in the stream, by kind."""
    info = await find(js, settings.dead_stream, ">")
    counts = info.state.subjects or {} if info else {}
    return {subject.rpartition(".")[2]: count for subject, count in sorted(counts.items())}


async def read_dead_letters(
    js: JetStreamContext, settings: Settings, kind: str | None, limit: int
) -> list[dict[str, Any]]:
    """The newest first, with their sequence in the stream and their kind."""
    info = await find(js, settings.dead_stream)
    letters: list[dict[str, Any]] = []
    seq = info.state.last_seq if info else 0
    while info and seq >= max(1, info.state.first_seq) and len(letters) < limit:
        with suppress(NotFoundError):
            message = await js.get_msg(settings.dead_stream, seq)
            letter_kind = (message.subject or "").rpartition(".")[2]
            if kind in (None, letter_kind):
                letters.append({"seq": seq, "kind": letter_kind, **json.loads(message.data or b"{}")})
        seq -= 1
    return letters
