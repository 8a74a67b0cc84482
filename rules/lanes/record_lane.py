"""The record lane: one worker at a time reads the record stream in commit order.

The other workers are hot standbys.

Guarantee: each event is evaluated once, in the order of `seq`, and what it starts commits with the
position of the lane. The position is in Postgres and a `seq` never changes its meaning, so a stream
that is rebuilt or created again starts nothing a second time. Records that expired in the stream are
read from the table. If rules are applied between the planning of a batch and its first lock, the
batch is planned again.

An event of the stream is compared with the table before it starts anything. If Postgres has lost
the commit, or another process published the message, the lane waits until an operator has accepted
the loss (`tocsin cdc adopt`), and passes over the messages of the recorded gap.

Why one worker at a time (docs/decisions/0009): starts, groups, rate limits and alarms see events in
one order, without races between workers. All workers share the performing of steps.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

import structlog
from nats.js.client import JetStreamContext
from pydantic import ValidationError

from cdc.log_reader import LogReader
from cdc.messages import message_of
from rules.documents.rule_book import newest_rules
from rules.lanes.arrival_gap import ArrivalGap
from rules.lanes.batch import PhasedPlan, Writes
from rules.lanes.lane import BatchPlan, LaneMessage
from rules.lanes.partition import PartitionWaits
from rules.lanes.rules_unchanged import RulesUnchanged
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.instant import EPOCH, MICROSECOND, parse_instant
from tocsin.core.settings import Settings
from tocsin.core.streams import wait_until_stream_exists

_log = structlog.get_logger()


class EventWork(Protocol):
    """Work that joins the batches of the record lane."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> Writes:
        """Read and decide, without a lock. `events` are in the order of `seq`."""


class RecordLane:
    name = "record"
    dead_letter_kind = "record"
    has_stable_sequences = True

    def __init__(self, settings: Settings, works: Sequence[EventWork]) -> None:
        self.stream = settings.stream
        self.max_batch = settings.worker_batch
        self._subjects = settings.subjects
        self._source = settings.source
        self._works = works

    def subjects(self, partition: int) -> list[str]:
        return []

    def is_sourced(self, subject: str) -> bool:
        return False

    async def read_stored(self, connection: Connection, after: int, limit: int) -> list[LaneMessage]:
        reader = LogReader(connection)
        records = await reader.read(after, limit) or await reader.read_gap(after, limit)
        messages = (message_of(record, self._subjects, self._source, sys.maxsize) for record in records)
        return [LaneMessage(message.seq, EPOCH, message.subject, message.body) for message in messages]

    def source_of(self, message: LaneMessage) -> str:
        """The subject: the type, the name and the owner of an event."""
        return message.subject

    def canary_subject(self, partition: int) -> str | None:
        return None

    async def open(self, connection: Connection, js: JetStreamContext) -> None:
        await connection.execute(statement("rules.lanes/begin_record_lane"))
        await wait_until_stream_exists(js, self.stream)

    async def plan(
        self,
        connection: Connection,
        partition: int,
        messages: Sequence[LaneMessage],
        gaps: Sequence[ArrivalGap] = (),
    ) -> BatchPlan:
        prefix = f"{self._subjects}.event."
        read = [
            event
            for message in messages
            if message.subject.startswith(prefix) and (event := _event(message)) is not None
        ]
        events = await _in_the_log(connection, read)
        rules_seq = await newest_rules(connection)
        works = [await work.plan(connection, events) for work in self._works]
        return PhasedPlan([RulesUnchanged(rules_seq), *works])

    def watermark_of(self, message: LaneMessage) -> datetime | None:
        """Several records share the instant of their commit, so the watermark is just before it."""
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            body = json.loads(message.data)
            return parse_instant(body.get("recordedat") or body["time"]) - MICROSECOND
        return None

    async def idle_watermark(self, connection: Connection, position: int) -> datetime | None:
        """Under the lock of the log no session is about to commit.

        If no record is behind `position`, everything that was recorded up to now has been read.
        """
        head, _ = await _read_head(connection)
        if head != position:
            return None
        async with connection.transaction():
            row = await fetch_one(connection, "rules.lanes/try_share_log")
            if row is None or not row[0]:
                return None
            head, now = await _read_head(connection)
        return now - MICROSECOND if head == position else None


async def _in_the_log(connection: Connection, events: Sequence[Event]) -> list[Event]:
    """The events without those of recorded gaps. `PartitionWaits` if the log has another record."""
    seqs = [event.seq for event in events]
    rows = await fetch_all(connection, "rules.lanes/read_event_identities", {"seqs": seqs}) if seqs else []
    logged = {seq: (id, recorded_at) for seq, id, recorded_at in rows}
    different = [event for event in events if logged.get(event.seq) != (event.id, event.recordedat)]
    if not different:
        return list(events)
    lost = {event.seq for event in different}
    rows = await fetch_all(connection, "rules.lanes/list_gap_seqs", {"seqs": sorted(lost)})
    if unexplained := sorted(lost - {seq for (seq,) in rows}):
        raise PartitionWaits(
            f"the stream has another record than the log at seq {unexplained[0]}",
            remedy="`tocsin doctor` shows what to do; if postgres lost commits, accept it with `tocsin cdc adopt`",
        )
    _log.warning("records that the log has lost start nothing", first=min(lost), count=len(lost))
    return [event for event in events if event.seq not in lost]


async def _read_head(connection: Connection) -> tuple[int, datetime]:
    row = await fetch_one(connection, "rules.lanes/read_log_head")
    assert row is not None
    return row[0], row[1]


def _event(message: LaneMessage) -> Event | None:
    """None for a foreign message on our subjects: it is logged and skipped."""
    try:
        return Event.model_validate_json(message.data)
    except ValidationError as error:
        _log.error("unreadable message in the stream", seq=message.seq, error=error)
        return None
