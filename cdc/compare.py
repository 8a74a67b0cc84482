"""Compares a message of the stream with the record of the log at its sequence. Pure.

Guarantee: a message is equal if its bytes are, or if it is an older form of the same record: within
`v1` fields are only added, so a message of an earlier version of Tocsin may lack some, but those it
has must be equal. A tombstone with the id of the record equals it.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cdc.messages import RecordMessage

# Attributes of every record in every version.
_REQUIRED = {"specversion", "id", "source", "type", "seq", "data"}


class StoredMessage(NamedTuple):
    """A message of the stream."""

    seq: int
    subject: str
    body: bytes


def difference(expected: RecordMessage | None, stored: StoredMessage | None) -> str | None:
    """The difference in a few words; None if there is none."""
    if stored is None:
        return (
            "the stream has no message" if expected is not None else "neither the log nor the stream has it"
        )
    if expected is None:
        return f"the log has no record, the stream has {id_of(stored.body)}"
    if stored.subject == expected.subject and stored.body == expected.body:
        return None
    in_log, in_stream = _attributes(expected.body), _attributes(stored.body)
    if in_stream is None or in_log is None or in_log["id"] != in_stream.get("id"):
        return f"the log has {id_of(expected.body)}, the stream has {id_of(stored.body)}"
    if in_stream.get("seq") != expected.seq:
        return f"the seq in the message is {in_stream.get('seq')}"
    if in_stream.get("type") == "record-unsendable":
        return None
    if stored.subject != expected.subject:
        return f"the subject is {stored.subject!r}, not {expected.subject!r}"
    different = sorted(
        name for name, value in in_stream.items() if name not in in_log or in_log[name] != value
    )
    different += sorted(_REQUIRED - in_stream.keys())
    return f"the body differs in {', '.join(different)}" if different else None


def id_of(body: bytes | None) -> str:
    attributes = _attributes(body)
    return str(attributes["id"]) if attributes and "id" in attributes else "a message that is not a record"


def _attributes(body: bytes | None) -> dict[str, Any] | None:
    try:
        attributes = json.loads(body or b"")
    except ValueError:
        return None
    return attributes if isinstance(attributes, dict) else None
