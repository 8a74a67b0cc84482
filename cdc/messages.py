"""Records as messages, each of a size that the server takes.

Guarantee: there is a message for every record. One that is larger than the server's `max_payload` becomes a
tombstone with the reason: the server would close the connection over it, again after every restart, and the
log would stand still for ever. Because headers count as payload, a little room is kept for ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import structlog

from cdc.log_reader import Record
from schemas.wire.calculated import CalculatedRow
from schemas.wire.event import EventRow
from schemas.wire.step import StepRow
from schemas.wire.tombstone import GapRow, Kind, TombstoneRow

_log = structlog.get_logger()
HEADER_BYTES = 256
_KINDS: dict[type, Kind] = {
    EventRow: "event",
    StepRow: "action-step",
    CalculatedRow: "calculated-datapoint",
}


class Message(NamedTuple):
    seq: int
    subject: str
    body: bytes


def messages_of(
    records: Iterable[Record], prefix: str, source: str, max_payload: int, chunk_bytes: int
) -> list[Message]:
    """Messages of the first records, one at least, until they fill `chunk_bytes`."""
    found: list[Message] = []
    for record in records:
        message = message_of(record, prefix, source, max_payload)
        chunk_bytes -= len(message.body)
        if found and chunk_bytes < 0:
            break
        found.append(message)
    return found


def message_of(record: Record, prefix: str, source: str, max_payload: int) -> Message:
    body = record.body(source)
    size = len(body) + HEADER_BYTES
    if size > max_payload and not isinstance(record, TombstoneRow | GapRow):
        reason = f"it takes {size} bytes, and nats accepts {max_payload} (max_payload)"
        _log.error("record cannot be sent", seq=record.seq, id=str(record.id), reason=reason)
        record = TombstoneRow(record.seq, record.id, _KINDS[type(record)], record.recorded_at, reason)
        body = record.body(source)
    return Message(record.seq, record.subject(prefix), body)
