"""Whether a message of the stream is the record that the log has at its place.

Guarantee: pure. A message is the same if its bytes are, or if it is an older form of the same record:
within `v1` fields are only added, so what an earlier version of Tocsin sent may lack some, but what it has
must be equal. A tombstone with the record's id stands for the record.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cdc.messages import Message

# Without these a message is not one of ours, in whatever version.
_ALWAYS = {"specversion", "id", "source", "type", "seq", "data"}


class Stored(NamedTuple):
    """A message as the stream has it."""

    seq: int
    subject: str
    body: bytes


def difference(expected: Message | None, found: Stored | None) -> str | None:
    """What is wrong, in a few words; None if nothing is."""
    if found is None:
        return "the stream has no message" if expected is not None else "neither log nor stream has anything"
    if expected is None:
        return f"the log has no record, the stream has {id_of(found.body)}"
    if found.subject == expected.subject and found.body == expected.body:
        return None
    ours, theirs = _attributes(expected.body), _attributes(found.body)
    if theirs is None or ours is None or ours["id"] != theirs.get("id"):
        return f"the log has {id_of(expected.body)}, the stream has {id_of(found.body)}"
    if theirs.get("seq") != expected.seq:
        return f"the message says that it is {theirs.get('seq')}"
    if theirs.get("type") == "record-unsendable":
        return None
    if found.subject != expected.subject:
        return f"the subject is {found.subject!r}, not {expected.subject!r}"
    other = sorted(name for name, value in theirs.items() if name not in ours or ours[name] != value)
    other += sorted(_ALWAYS - theirs.keys())
    return f"the body differs in {', '.join(other)}" if other else None


def id_of(body: bytes | None) -> str:
    attributes = _attributes(body)
    return str(attributes["id"]) if attributes and "id" in attributes else "a message of somebody else"


def _attributes(body: bytes | None) -> dict[str, Any] | None:
    try:
        read = json.loads(body or b"")
    except ValueError:
        return None
    return read if isinstance(read, dict) else None
