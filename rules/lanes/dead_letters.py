"""Dead letters: rejected messages, kept in a stream of their own with the reason.

Guarantee: a dead letter is in the stream before the position moves behind the message, so no
message disappears without a trace. After a crash it may be there twice; within the server's
duplicate window, `identity` prevents that.

The stream is bounded by the number of letters, and by `TOCSIN_DEAD_LETTERS_MB`: beyond it new letters
keep only the first bytes of their message. The bound in bytes is not one of the stream, because
JetStream reserves `max_bytes`, and a server with less free space would reject the stream.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from nats.js.api import StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from rules.metrics import DEAD_LETTERS
from schemas.wire.dead_letter import DeadLetter, shortened
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure, find, stream_config

_ACK_S = 5
# A producer that sends only invalid messages must not fill the disk.
_MAX_LETTERS = 100_000
_SHORT_BODY_BYTES = 256
# How much a process sends before it reads the size of the stream again.
_READ_AGAIN_BYTES = 4 * 1024 * 1024
_READ_AGAIN_S = 30.0


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


@dataclass
class _Space:
    """The size of the stream of dead letters, as this process knows it."""

    is_full: bool = False
    sent_bytes: int = _READ_AGAIN_BYTES
    """Since the size was read; at first as if it had to be read now."""
    read_s: float = 0.0


_spaces: dict[str, _Space] = {}


def _space(settings: Settings) -> _Space:
    return _spaces.setdefault(f"{settings.nats}/{settings.dead_stream}", _Space())


async def _note_sent(js: JetStreamContext, settings: Settings, size: int) -> None:
    """Read the size of the stream now and then. After a letter, so that letters keep their order."""
    space = _space(settings)
    space.sent_bytes += size
    if space.sent_bytes > _READ_AGAIN_BYTES or time.monotonic() - space.read_s > _READ_AGAIN_S:
        space.sent_bytes, space.read_s = 0, time.monotonic()
        info = await find(js, settings.dead_stream)
        space.is_full = info is not None and info.state.bytes > settings.dead_letters_mb * 1_000_000


async def send_dead_letter(
    js: JetStreamContext, settings: Settings, kind: str, letter: DeadLetter, identity: str
) -> None:
    if _space(settings).is_full:
        letter = shortened(letter, _SHORT_BODY_BYTES)
    await js.publish(
        f"{settings.subjects}.dead.{kind}",
        letter.model_dump_json().encode(),
        timeout=_ACK_S,
        headers={"Nats-Msg-Id": identity},
        stream=settings.dead_stream,
    )
    DEAD_LETTERS.add(1, kind)
    await _note_sent(js, settings, len(letter.body))


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
