"""The report of the publisher: one row, which `tocsin doctor` reads without NATS.

Guarantee: a problem appends one event when it begins: `cdc-stopped` if the publisher stopped,
`cdc-differed` if the stream check found a difference. It appends `cdc-recovered` when it is fixed.
Several publishers and restarts append no further events, because the row stores the current
problem. Row and event commit together.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

import structlog

from cdc.errors import LogHole, StreamAhead, StreamRefused
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_one, retrying
from tocsin.core.instant import instant_text
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

_log = structlog.get_logger()
# `StreamDiffers` has the kind of `StreamAhead`.
_STOPPING_PROBLEMS = {stop.kind for stop in (StreamAhead, LogHole, StreamRefused)}


@dataclass(frozen=True)
class PublisherReport:
    """The row of `cdc_report`: the numbers of the last stream check, and the current problem."""

    at: datetime | None = None
    """When the last stream check ended."""
    holder: str | None = None
    """The publisher that ran it."""
    head: int | None = None
    """The seq of the newest record of the log at that time."""
    first_seq: int | None = None
    """The first sequence of the stream."""
    last_seq: int | None = None
    """The last sequence of the stream."""
    lag_s: float | None = None
    """How long the oldest unpublished record had waited."""
    compared: int | None = None
    """How many messages of the stream were compared with the log."""
    problem: str | None = None
    """The kind of the current problem; None if there is none."""
    detail: str | None = None
    remedy: str | None = None
    seq: int | None = None
    """The seq at which the problem is, if it is about one record."""
    since: datetime | None = None
    """When the problem began."""
    age_s: float | None = None
    """The time since `at`."""


async def read_report(connection: Connection) -> PublisherReport:
    row = await fetch_one(connection, "cdc/read_report")
    return PublisherReport(*row) if row else PublisherReport()


async def report_problem(
    connection: Connection,
    problem: str | None,
    detail: str = "",
    seq: int | None = None,
    *,
    remedy: str = "",
) -> None:
    """Store the current problem (None: there is none), and append an event if it changed."""

    async def store() -> None:
        async with connection.transaction():
            values = {"problem": problem, "detail": detail or None, "remedy": remedy or None, "seq": seq}
            row = await fetch_one(connection, "cdc/write_problem", values)
            before, since = row or (None, None)
            if before == problem:
                return
            now = await database_now(connection)
            if problem is None:
                payload = {"problem": before, "since": instant_text(since) if since else None}
                event = NewEvent(now, "derived", "cdc-recovered", payload)
            else:
                type = "cdc-stopped" if problem in _STOPPING_PROBLEMS else "cdc-differed"
                payload = {"problem": problem, "detail": detail, "remedy": remedy, "seq": seq}
                event = NewEvent(now, "derived", type, payload)
            await append_events(connection, [event])
            _log.log(
                logging.INFO if problem is None else logging.ERROR,
                event.type,
                problem=problem or before,
                detail=detail,
                remedy=remedy,
            )

    await retrying(store)
