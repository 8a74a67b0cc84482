"""Dead letters: records that could not be handled, stored in their own stream for an operator.

Guarantee: one letter per consumer and record. NATS rejects a letter whose subject,
`<namespace>.dead.<consumer>.<seq>`, exists, so a process that dies after sending the letter leaves
no second one. The body is the record's, unchanged. The headers give the subject, the reason and the
number of attempts.

On failure: the error of NATS. The record is not acknowledged then, and is delivered again.
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


async def send_dead_letter(
    client: Client, namespace: str, consumer: str, message: Msg, attempts: int, reason: str
) -> None:
    seq = message.metadata.sequence.stream
    subject = f"{namespace}.dead.{consumer}.{seq}"
    headers = {
        **_original(message.headers or {}),
        "Tocsin-Consumer": consumer,
        "Tocsin-Subject": message.subject,
        "Tocsin-Seq": str(seq),
        "Tocsin-Attempts": str(attempts),
        "Tocsin-Reason": _one_line(reason),
        "Nats-Expected-Last-Subject-Sequence": "0",
    }
    # Headers count as payload. A record of nearly the maximum size is stored without its body; the
    # record stream still has it.
    body = message.data if len(message.data) + _HEADER_BYTES <= client.max_payload else b""
    answer = json.loads((await client.request(subject, body, timeout=_TIMEOUT_S, headers=headers)).data)
    error = answer.get("error")
    if error is not None and error.get("err_code") != _WRONG_LAST_SEQUENCE:
        raise Unreachable(f"nats rejected the dead letter {subject!r} ({error.get('description')})")


def _original(headers: Mapping[str, str]) -> dict[str, str]:
    """The record's headers.

    Those of NATS get a prefix, because NATS would apply them to the letter.
    """
    return {
        f"Tocsin-Original-{name}" if name.lower().startswith("nats-") else name: value
        for name, value in headers.items()
    }


def _one_line(text: str) -> str:
    """One line of ASCII: clients differ in how they read other characters in headers."""
    line = " ".join(text.split())[:_LONGEST_REASON]
    return line.encode("ascii", "backslashreplace").decode()
