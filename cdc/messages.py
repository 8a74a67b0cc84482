"""Builds the message of a record, which the NATS server accepts.

Guarantee: there is a message for every record. A record larger than `max_payload` of the server, or
whose subject is longer than a protocol line, becomes a tombstone with the reason. The server would
otherwise close the connection at that record, again after every restart, and nothing after it would
be published. Headers count as payload, so `HEADER_BYTES` are reserved for them.
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
# A protocol line has at most 4,096 bytes (`max_control_line`): the subject, the reply subject, sizes.
_MAX_SUBJECT_BYTES = 3584
_KINDS: dict[type, Kind] = {
    EventRow: "event",
    StepRow: "action-step",
    CalculatedRow: "calculated-datapoint",
}


class RecordMessage(NamedTuple):
    seq: int
    subject: str
    body: bytes


def messages_of(
    records: Iterable[Record], prefix: str, source: str, max_payload: int, chunk_bytes: int
) -> list[RecordMessage]:
    """Messages of the first records, at least one, until they fill `chunk_bytes`."""
    messages: list[RecordMessage] = []
    for record in records:
        message = message_of(record, prefix, source, max_payload)
        chunk_bytes -= len(message.body)
        if messages and chunk_bytes < 0:
            break
        messages.append(message)
    return messages


def message_of(record: Record, prefix: str, source: str, max_payload: int) -> RecordMessage:
    subject, body = record.subject(prefix), record.body(source)
    if isinstance(record, TombstoneRow | GapRow):
        return RecordMessage(record.seq, subject, body)
    reason = _refusal(len(subject), len(body) + HEADER_BYTES, max_payload)
    if reason is not None:
        _log.error("record cannot be published", seq=record.seq, id=str(record.id), reason=reason)
        tombstone = TombstoneRow(record.seq, record.id, _KINDS[type(record)], record.recorded_at, reason)
        subject, body = tombstone.subject(prefix), tombstone.body(source)
    return RecordMessage(record.seq, subject, body)


def _refusal(subject_bytes: int, size: int, max_payload: int) -> str | None:
    """Why NATS would not accept a message of this size; None if it would."""
    if size > max_payload:
        return f"it takes {size} bytes, and nats accepts {max_payload} (max_payload)"
    if subject_bytes > _MAX_SUBJECT_BYTES:
        return f"its subject takes {subject_bytes} bytes, and nats accepts about 4000 (max_control_line)"
    return None
