"""Client for other services: schedules, consumes the record stream, sends datapoints and events.

Guarantees:
- A schedule or a cancellation commits with the service's own work, or not at all.
- With an `Inbox`, the note that a record was handled commits with what the handler wrote.
- JetStream has acknowledged what a `Producer` sent, or the producer raises an error.
- Nothing here writes to the record log. Only what a producer sends needs a worker, which takes it.

Why on the service's connection: a process may die between a commit there and a call to another
server. One transaction leaves no such moment.

Entry points: `consume` calls a handler for each record, with an `Inbox` (Postgres) or a `KvMark`
(NATS) as the mark store. `Producer` sends datapoints and external events. `schedule_once`,
`schedule_recurring`, `schedule_move` and `schedule_cancel` schedule, `report_completed` and
`report_failed` answer a dispatched step, and `replay` reads old records again.

On failure: `Refused` and `InvalidInput` leave an open transaction as it was, still usable.

Import names from `tocsin.client`. Modules that begin with `_` define none of them.
"""

from __future__ import annotations

from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.event import Event
from schemas.wire.step import ActionStep
from schemas.wire.tombstone import Tombstone
from timers.working_set import arm, cancel, cancel_all
from tocsin.client.consume import consume, consume_batches, prepare
from tocsin.client.delivery import Delivery, Undeliverable
from tocsin.client.inbox import Inbox, inbox_sql, make_inbox
from tocsin.client.kv_mark import KvMark
from tocsin.client.producer import Producer, check_in, emit, send
from tocsin.client.replay import replay
from tocsin.client.reports import report_completed, report_failed
from tocsin.client.schedules import (
    Schedule,
    Scheduled,
    get_schedule,
    list_schedules,
    schedule_cancel,
    schedule_cancel_all,
    schedule_move,
    schedule_once,
    schedule_recurring,
)
from tocsin.client.select import CalculatedDatapoints, Events, Records, Steps, Tombstones
from tocsin.core.errors import InvalidInput, Refused, TocsinError, Unreachable

__all__ = [
    "ActionStep",
    "CalculatedDatapoint",
    "CalculatedDatapoints",
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
    "arm",
    "cancel",
    "cancel_all",
    "check_in",
    "consume",
    "consume_batches",
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
    "schedule_move",
    "schedule_once",
    "schedule_recurring",
    "send",
]
