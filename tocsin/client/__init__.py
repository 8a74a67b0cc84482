"""Tocsin for services: scheduling in the service's own transaction, consuming the record stream once, and sending
datapoints and events.

Guarantees: what a service schedules or cancels commits with its own work, or not at all. What it consumes is
handled once: the note that a record was handled commits with what the handler wrote (`Inbox`). What a `Producer`
was given is acknowledged by JetStream, or an error says that it is not. Nothing here touches the record log, and only
what is sent needs a worker, which takes it.

Why on the service's connection: between a commit there and a call to another server lies the moment in which
a process dies. One transaction has no such moment.

On failure: `Refused` and `InvalidInput` leave a transaction that was under way as it was, still usable.
"""

from __future__ import annotations

from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.event import Event
from schemas.wire.step import ActionStep
from schemas.wire.tombstone import Tombstone
from timers.working_set import arm, cancel, cancel_all
from tocsin.client._consumer_loop import Undeliverable
from tocsin.client.consume import consume, prepare
from tocsin.client.delivery import Delivery
from tocsin.client.inbox import Inbox, inbox_sql, make_inbox
from tocsin.client.kv_mark import KvMark
from tocsin.client.producer import Producer, emit, send
from tocsin.client.replay import replay
from tocsin.client.reports import report_completed, report_failed
from tocsin.client.schedules import (
    Schedule,
    Scheduled,
    get_schedule,
    list_schedules,
    schedule_cancel,
    schedule_cancel_all,
    schedule_once,
)
from tocsin.client.select import Events, Records, Steps, Tombstones, Verdicts
from tocsin.core.errors import InvalidInput, Refused, TocsinError, Unreachable

__all__ = [
    "ActionStep",
    "CalculatedDatapoint",
    "Delivery",
    "Event",
    "Events",
    "Inbox",
    "InvalidInput",
    "KvMark",
    "Producer",
    "Records",
    "Refused",
    "Schedule",
    "Scheduled",
    "Steps",
    "TocsinError",
    "Tombstone",
    "Tombstones",
    "Undeliverable",
    "Unreachable",
    "Verdicts",
    "arm",
    "cancel",
    "cancel_all",
    "consume",
    "emit",
    "get_schedule",
    "inbox_sql",
    "list_schedules",
    "make_inbox",
    "prepare",
    "replay",
    "report_completed",
    "report_failed",
    "schedule_cancel",
    "schedule_cancel_all",
    "schedule_once",
    "send",
]
