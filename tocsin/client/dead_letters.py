"""Dead letters: records that could not be handled, kept in a stream of their own until a person has looked.

Guarantee: one letter per consumer and record. Its subject, `<namespace>.dead.<consumer>.<seq>`, is new or it is
refused, so a process that dies between the letter and the note of it leaves no second one. The body is the
record's, untouched; the headers say what it was, why it failed and how often it was tried.

On failure: the error of NATS; the record is not acknowledged then, and comes again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from tocsin.core.errors import Unreachable
from tocsin.core.streams import stream_config

_TIMEOUT_S = 5.0
_WRONG_LAST_SEQUENCE = 10071
_LONGEST_REASON = 2000
_HEADER_BYTES = 8000


def dead_stream(namespace: str, replicas: int) -> StreamConfig:
    return stream_config(
        f"{namespace}-consumers-dead",
        [f"{namespace}.dead.>"],
        replicas,
        description="tocsin dead letters: records that consumers could not handle",
        max_msgs_per_subject=1,
    )


async def bury(client: Client, namespace: str, consumer: str, message: Msg, reason: str) -> None:
    seq = message.metadata.sequence.stream
    subject = f"{namespace}.dead.{consumer}.{seq}"
    headers = {
        **_original(message.headers or {}),
        "Tocsin-Consumer": consumer,
        "Tocsin-Subject": message.subject,
        "Tocsin-Seq": str(seq),
        "Tocsin-Attempts": str(message.metadata.num_delivered),
        "Tocsin-Reason": _one_line(reason),
        "Nats-Expected-Last-Subject-Sequence": "0",
    }
    # Headers count as payload: a record that just fits leaves no room for them, and is read in the stream itself.
    body = message.data if len(message.data) + _HEADER_BYTES <= client.max_payload else b""
    answer = json.loads((await client.request(subject, body, timeout=_TIMEOUT_S, headers=headers)).data)
    error = answer.get("error")
    if error is not None and error.get("err_code") != _WRONG_LAST_SEQUENCE:
        raise Unreachable(f"nats refused the dead letter {subject!r}: {error.get('description')}")


def _original(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of NATS under another name: `Nats-Expected-Last-Sequence` would be obeyed again."""
    return {
        f"Tocsin-Original-{name}" if name.lower().startswith("nats-") else name: value
        for name, value in headers.items()
    }


def _one_line(text: str) -> str:
    """A header is one line; of plain letters, because readers of headers differ on the others."""
    line = " ".join(text.split())[:_LONGEST_REASON]
    return line.encode("ascii", "backslashreplace").decode()
