"""Compares a message of the stream with the record of the log at its sequence. Pure.

Guarantee: a message is equal if its bytes are, or if it is an older form of the same record: within
`v1` fields are only added, so a message of an earlier version of Tocsin may lack some, but those it
has must be equal. A tombstone with the id of the record stands for the record.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cdc.messages import RecordMessage

# Attributes of every record in every version.
_ALWAYS = {"specversion", "id", "source", "type", "seq", "data"}


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
    ours, theirs = _attributes(expected.body), _attributes(stored.body)
    if theirs is None or ours is None or ours["id"] != theirs.get("id"):
        return f"the log has {id_of(expected.body)}, the stream has {id_of(stored.body)}"
    if theirs.get("seq") != expected.seq:
        return f"the seq in the message is {theirs.get('seq')}"
    if theirs.get("type") == "record-unsendable":
        return None
    if stored.subject != expected.subject:
        return f"the subject is {stored.subject!r}, not {expected.subject!r}"
    different = sorted(name for name, value in theirs.items() if name not in ours or ours[name] != value)
    different += sorted(_ALWAYS - theirs.keys())
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
