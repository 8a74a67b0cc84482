"""Subjects of records in JetStream.

Guarantee: each text has one token, and no two texts have the same one: bytes outside
`[A-Za-z0-9_-]` become `%XX`, and the empty text is `_`. So no owner and no name can add a level, a
wildcard or a space to a subject. The text `_` itself is encoded, to differ from the empty text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote
from uuid import UUID

_SAFE = re.compile(r"[A-Za-z0-9_-]+")


@lru_cache(maxsize=65_536)
def token(text: str) -> str:
    if not text:
        return "_"
    if text != "_" and _SAFE.fullmatch(text):
        return text
    return "".join(
        chr(byte) if _SAFE.fullmatch(chr(byte)) and text != "_" else f"%{byte:02X}" for byte in text.encode()
    )


def text_of(subject_token: str) -> str:
    """The inverse of `token`."""
    return "" if subject_token == "_" else unquote(subject_token, errors="strict")  # noqa: S105 of a subject


def event_subject(prefix: str, origin: str, type: str, name: str, owner: str) -> str:
    return f"{prefix}.event.{origin}.{token(type)}.{token(name)}.{token(owner)}"


def action_subject(prefix: str, name: str, priority: str | None = None) -> str:
    """`priority` is that of a due step, unless it is normal: workers read these steps apart."""
    subject = f"{prefix}.action.{token(name)}"
    return subject if priority is None else f"{subject}.{priority}"


def due_steps_subject(prefix: str, priority: str | None) -> str:
    """The subjects of all due steps with a priority; without one they share those of other states."""
    return f"{prefix}.action.*" if priority is None else f"{prefix}.action.*.{priority}"


def series_tokens(key: str) -> str:
    """The levels of a key: its dots separate levels of the subject, other characters are
    encoded."""
    return ".".join(token(part) for part in key.split("."))


def datapoint_subject(prefix: str, owner: str, key: str) -> str:
    """The subject of producers. An empty key is `_`, for a batch in which each datapoint has its
    own key."""
    return f"{prefix}.datapoint.{token(owner)}.{series_tokens(key)}"


def calculated_subject(prefix: str, kind: str, owner: str, key: str) -> str:
    level = kind if kind in ("health", "calc") else "staleness"
    return f"{prefix}.{level}.{token(owner)}.{series_tokens(key)}"


def report_subject(prefix: str, action_id: UUID, step: int, token: str) -> str:
    """The subject of reports about a dispatched message."""
    return f"{prefix}.report.{action_id}.{step}.{token}"


def tombstone_subject(prefix: str, kind: str) -> str:
    return f"{prefix}.tombstone.{kind}"


def ingest_subject(prefix: str, owner: str | None = None) -> str:
    """The subject of external events: of all producers, or of those that may send for one owner."""
    return f"{prefix}.ingest.event" if owner is None else f"{prefix}.ingest.event.{token(owner)}"


def ingest_owner(prefix: str, subject: str) -> str | None:
    """The owner that the subject of an external event names; None if it names none.

    `ValueError` if it is not the encoding of an owner.
    """
    name = subject.removeprefix(ingest_subject(prefix)).removeprefix(".")
    if not name:
        return None
    owner = text_of(name)
    if token(owner) != name:
        raise ValueError(f"{name!r} in the subject is not the encoding of an owner")
    return owner
