"""Tocsin for services: schedules and timers on the service's own connection, inside its own transaction.

Guarantees: what a service schedules or cancels commits with its own work, or not at all. Nothing here commits,
touches the record log, or needs a Tocsin process to run. Scheduling is idempotent by (owner, name).

Why on the service's connection: between a commit there and a call to another server lies the moment in which
a process dies. One transaction has no such moment.

On failure: `Refused` and `InvalidInput` leave a transaction that was under way as it was, still usable.
"""

from __future__ import annotations

from timers.working_set import arm, cancel, cancel_all
from tocsin.client.schedules import (
    Schedule,
    Scheduled,
    get_schedule,
    list_schedules,
    schedule_cancel,
    schedule_cancel_all,
    schedule_once,
)
from tocsin.core.errors import InvalidInput, Refused, TocsinError

__all__ = [
    "InvalidInput",
    "Refused",
    "Schedule",
    "Scheduled",
    "TocsinError",
    "arm",
    "cancel",
    "cancel_all",
    "get_schedule",
    "list_schedules",
    "schedule_cancel",
    "schedule_cancel_all",
    "schedule_once",
]
