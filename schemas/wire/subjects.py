"""Subjects: the addresses of records in JetStream, safe whatever an owner or a name contains.

Guarantee: one text gives one token, two texts never the same one: bytes outside `[A-Za-z0-9_-]` become `%XX`,
and the empty text is `_`. So no name can add a level, a wildcard or a space to a subject. A text that is `_`
itself is encoded, to stay apart from the empty one.
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
    return "" if subject_token == "_" else unquote(subject_token, errors="strict")


def event_subject(prefix: str, origin: str, type: str, name: str, owner: str) -> str:
    return f"{prefix}.event.{origin}.{token(type)}.{token(name)}.{token(owner)}"


def action_subject(prefix: str, name: str) -> str:
    return f"{prefix}.action.{token(name)}"


def series_tokens(key: str) -> str:
    """The levels of a key: its dots are levels of the subject, whatever else is in it is encoded."""
    return ".".join(token(part) for part in key.split("."))


def datapoint_subject(prefix: str, owner: str, key: str) -> str:
    """Where producers send; an empty key is `_`, for a batch in which each datapoint names its own."""
    return f"{prefix}.datapoint.{token(owner)}.{series_tokens(key)}"


def calculated_subject(prefix: str, verdict: str, owner: str, key: str) -> str:
    lane = "health" if verdict == "health" else "staleness"
    return f"{prefix}.{lane}.{token(owner)}.{series_tokens(key)}"


def report_subject(prefix: str, action_id: UUID, step: int) -> str:
    """Where whoever took a dispatched message says what came of it."""
    return f"{prefix}.report.{action_id}.{step}"


def tombstone_subject(prefix: str, kind: str) -> str:
    return f"{prefix}.tombstone.{kind}"
