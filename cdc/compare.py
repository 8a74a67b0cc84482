"""Compares a message of the stream with the record of the log at its sequence. Pure.

Guarantee: a message is of the same record if id and instant of the append are equal. The id alone
does not tell: a fire that Postgres lost is fired again with the same id. A message is equal if its
bytes are, or if it is an older form of the same record: within `v1` fields are only added, so a
message of an earlier version of Tocsin may lack some, but those it has must be equal. A tombstone
of the record equals it. The content of a record that was erased for its owner may still be in the stream.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cdc.messages import RecordMessage

# Attributes of every record in every version.
_CONTENT = "data"
_REQUIRED = {"specversion", "id", "source", "type", "seq", _CONTENT}


class StoredMessage(NamedTuple):
    """A message of the stream."""

    seq: int
    subject: str
    body: bytes


def difference(
    expected: RecordMessage | None, stored: StoredMessage | None, *, is_erased: bool = False
) -> str | None:
    """The difference in a few words; None if there is none.

    `is_erased`: the log has no content of the record any more (`tocsin forget`).
    """
    if stored is None:
        return (
            "the stream has no message" if expected is not None else "neither the log nor the stream has it"
        )
    if expected is None:
        return f"the log has no record, the stream has {identity_text(stored.body)}"
    if stored.subject == expected.subject and stored.body == expected.body:
        return None
    in_log, in_stream = _attributes(expected.body), _attributes(stored.body)
    if in_stream is None or in_log is None or not is_same_record(expected.body, stored.body):
        return f"the log has {identity_text(expected.body)}, the stream has {identity_text(stored.body)}"
    if in_stream.get("seq") != expected.seq:
        return f"the seq in the message is {in_stream.get('seq')}"
    if in_stream.get("type") == "record-unsendable":
        return None
    if stored.subject != expected.subject:
        return f"the subject is {stored.subject!r}, not {expected.subject!r}"
    different = sorted(
        name
        for name, value in in_stream.items()
        if (name not in in_log or in_log[name] != value) and not (is_erased and name == _CONTENT)
    )
    different += sorted(_REQUIRED - in_stream.keys())
    return f"the body differs in {', '.join(different)}" if different else None


def is_same_record(in_log: bytes, in_stream: bytes | None) -> bool:
    """Whether two bodies are of the same record: the same id, appended at the same instant.

    The tombstone of a record that cannot be read has no instant.
    """
    log_identity, stream_identity = _identity(in_log), _identity(in_stream)
    if log_identity is None or stream_identity is None:
        return False
    (id, recorded_at), (other_id, other_recorded_at) = log_identity, stream_identity
    return id == other_id and (recorded_at == other_recorded_at or None in (recorded_at, other_recorded_at))


def identity_text(body: bytes | None) -> str:
    identity = _identity(body)
    if identity is None:
        return "a message that is not a record"
    id, recorded_at = identity
    return f"{id} recorded at {recorded_at}" if recorded_at else id


def _identity(body: bytes | None) -> tuple[str, str | None] | None:
    attributes = _attributes(body)
    if attributes is None or "id" not in attributes:
        return None
    # Of steps and tombstones, `time` is the instant of the append.
    return str(attributes["id"]), attributes.get("recordedat") or attributes.get("time")


def _attributes(body: bytes | None) -> dict[str, Any] | None:
    try:
        attributes = json.loads(body or b"")
    except ValueError:
        return None
    return attributes if isinstance(attributes, dict) else None
