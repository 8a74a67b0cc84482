"""Puts dead letters back: sends the messages again, as new arrivals.

Guarantee: a dead letter is deleted after the stream of its producers has acknowledged the message,
so a message is never lost on the way. If the command dies between the two, it sends the message
again: the server drops the second one within its duplicate window, and an external event is known
by its `id`. A datapoint or an event without a `ts` gets the time of its first arrival, so that this
stays visible.

A message that is rejected again is a new dead letter.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from rules.lanes.data_stream import is_calculated_subject, producer_subject
from schemas.wire.dead_letter import DeadLetter
from tocsin.core.errors import Refused
from tocsin.core.instant import parse_instant
from tocsin.core.settings import Settings
from tocsin.core.streams import find

REQUEST = "request"
"""The kind of dead letters about rejected parts of requests to the API."""
_ACK_S = 5
_NO_MESSAGE = 10057
_PARTLY_STORED = re.compile(r"\d+ of \d+ datapoints were rejected")


class StoredLetter(NamedTuple):
    """A dead letter and its position in the stream of dead letters."""

    seq: int
    kind: str
    identity: str
    """The stream and the sequence of the message: `tocsin/17`."""
    letter: DeadLetter


@dataclass(frozen=True)
class LetterFilter:
    """The dead letters that are put back. An empty filter selects all."""

    seqs: Collection[int] = ()
    kind: str | None = None
    reason: str | None = None
    """A part of the reason, in any case."""
    since: datetime | None = None
    """The earliest arrival."""

    def selects(self, stored: StoredLetter) -> bool:
        letter = stored.letter
        return (
            (not self.seqs or stored.seq in self.seqs)
            and self.kind in (None, stored.kind)
            and (self.reason is None or self.reason.lower() in letter.reason.lower())
            and (self.since is None or parse_instant(letter.at) >= self.since)
        )


async def select_letters(
    js: JetStreamContext, settings: Settings, wanted: LetterFilter
) -> list[StoredLetter]:
    """The dead letters that a filter selects, oldest first."""
    info = await find(js, settings.dead_stream)
    if info is None:
        return []
    seqs = wanted.seqs or range(max(1, info.state.first_seq), info.state.last_seq + 1)
    letters: list[StoredLetter] = []
    for seq in sorted(seqs):
        with suppress(NotFoundError):
            message = await js.get_msg(settings.dead_stream, seq)
            stored = StoredLetter(
                seq,
                (message.subject or "").rpartition(".")[2],
                (message.headers or {}).get("Nats-Msg-Id", ""),
                DeadLetter.model_validate_json(message.data or b""),
            )
            if wanted.selects(stored):
                letters.append(stored)
    return letters


async def put_back(js: JetStreamContext, settings: Settings, stored: StoredLetter) -> None:
    """Send the message again and delete the dead letter. `Refused` if it cannot be sent as it was."""
    letter = stored.letter
    if stored.kind == "step":
        raise Refused(
            "it is a step of a run, which only the log can make due again",
            remedy="retry or cancel the run with `tocsin actions`",
        )
    body = _body(letter)
    if stored.kind in ("datapoint", "event"):
        body = with_arrival(body, letter.at)
    subject = letter.subject
    if is_calculated_subject(settings, subject):
        raise Refused(
            "it is a calculated datapoint of the record log",
            remedy="none: the log has it, and no producer may send it",
        )
    if subject.startswith(f"{settings.subjects}.data."):
        subject = producer_subject(settings, subject)
    identity = f"{settings.dead_stream}/{stored.seq}"
    headers = {"Nats-Msg-Id": identity, "Tocsin-Arrived-At": letter.at}
    await js.publish(subject, body, timeout=_ACK_S, headers=headers)
    await delete_letter(js, settings, stored)


async def delete_letter(js: JetStreamContext, settings: Settings, stored: StoredLetter) -> None:
    try:
        await js.delete_msg(settings.dead_stream, stored.seq)
    except APIError as error:
        if error.err_code != _NO_MESSAGE:
            raise


def with_arrival(body: bytes, arrived_at: str) -> bytes:
    """The body with `ts` where it has none, in a batch for each datapoint."""
    try:
        content = json.loads(body)
        for item in content.get("batch", [content]):
            if item.get("ts") is None:
                item["ts"] = arrived_at
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, AttributeError, TypeError):
        return body  # not what a worker accepts: it becomes the same dead letter again


def _body(letter: DeadLetter) -> bytes:
    body = base64.b64decode(letter.body) if letter.encoding == "base64" else letter.body.encode()
    if len(body) < letter.size:
        raise Refused(
            f"only the first {len(body):,} of {letter.size:,} bytes were kept",
            remedy="let its producer send it again",
        )
    if _PARTLY_STORED.match(letter.reason):
        raise Refused(
            "the other datapoints of its batch were stored", remedy="send the rejected datapoints again"
        )
    return body


def record_seq(stored: StoredLetter) -> int:
    """The seq of the record in a dead letter of kind `record`."""
    return int(stored.identity.rpartition("/")[2])


def letter_facts(stored: StoredLetter) -> dict[str, Any]:
    return {"seq": stored.seq, "kind": stored.kind, "arrived_at": stored.letter.at}
