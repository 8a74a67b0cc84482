"""A record as the feed keeps it: the body as published, and the fields that queries compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.policy import Operation

# The fields of a body that a query can compare, by their name in queries.
FIELDS: Mapping[str, str] = {
    "owner": "owner",
    "type": "type",
    "origin": "origin",
    "schedule": "schedule",
    "rule": "rule",
    "action": "action",
    "key": "key",
    "alarm": "alarmid",
    "run": "actionid",
    "correlation": "correlationid",
}
# By the level after namespace and version in the subject: the kind, and the operation that reads it.
_KINDS: Mapping[str, tuple[str, Operation]] = {
    "event": ("event", Operation.VIEW_EVENTS),
    "action": ("step", Operation.VIEW_ACTIONS),
    "staleness": ("datapoint", Operation.VIEW_SERIES),
    "health": ("datapoint", Operation.VIEW_SERIES),
    "calc": ("datapoint", Operation.VIEW_SERIES),
    "tombstone": ("tombstone", Operation.VIEW_EVENTS),
}
KINDS = ("event", "step", "datapoint", "tombstone")


@dataclass(frozen=True, slots=True)
class LiveRecord:
    seq: int
    kind: str
    operation: Operation
    fields: Mapping[str, str]
    """Only fields that are not empty, by their name in queries; with `severity` as a number."""
    body: bytes

    @property
    def owner(self) -> str:
        return self.fields.get("owner", "")


def read_record(seq: int, subject: str, body: bytes) -> LiveRecord | None:
    """The record in a message of the stream; None if it is not a record that this version knows."""
    levels = subject.split(".", 3)
    kind = _KINDS.get(levels[2]) if len(levels) > 2 else None
    if kind is None:
        return None
    try:
        attributes = json.loads(body)
        fields = {name: str(attributes[key]) for name, key in FIELDS.items() if attributes.get(key)}
        if attributes.get("severity"):
            fields["severity"] = str(attributes["severity"])
    except (ValueError, AttributeError, RecursionError):
        return None
    return LiveRecord(seq, *kind, fields, body)
