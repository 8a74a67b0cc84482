"""The report of the publisher: one row, which `tocsin doctor` reads without NATS.

Guarantee: a problem appends one event when it begins (`cdc-stopped`, `cdc-differed`) and one when
it is fixed (`cdc-recovered`). Several publishers and restarts append no further events, because the
row stores the current problem. Row and event commit together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import structlog

from cdc.errors import LogHole, StreamAhead, StreamRefused
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_one, retrying
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

_log = structlog.get_logger()
_STOPS = {stop.kind for stop in (StreamAhead, LogHole, StreamRefused)}


@dataclass(frozen=True)
class PublisherReport:
    """The row of `cdc_report`: the numbers of the last audit, and the current problem."""

    at: datetime | None
    holder: str | None
    head: int | None
    first_seq: int | None
    last_seq: int | None
    lag_s: float | None
    compared: int | None
    problem: str | None
    detail: str | None
    remedy: str | None
    seq: int | None
    since: datetime | None
    age_s: float | None


async def read_report(connection: Connection) -> PublisherReport:
    row = await fetch_one(connection, "cdc/read_report")
    return PublisherReport(*row) if row else PublisherReport(*[None] * 13)


async def report_problem(
    connection: Connection,
    problem: str | None,
    detail: str = "",
    seq: int | None = None,
    *,
    remedy: str = "",
) -> None:
    """Store the current problem; None if there is none."""

    async def store() -> None:
        async with connection.transaction():
            values = {"problem": problem, "detail": detail or None, "remedy": remedy or None, "seq": seq}
            row = await fetch_one(connection, "cdc/write_problem", values)
            before, since = row or (None, None)
            if before == problem:
                return
            now = await database_now(connection)
            if problem is None:
                payload = {"problem": before, "since": since.isoformat() if since else None}
                event = NewEvent(now, "derived", "cdc-recovered", payload)
            else:
                type = "cdc-stopped" if problem in _STOPS else "cdc-differed"
                payload = {"problem": problem, "detail": detail, "remedy": remedy, "seq": seq}
                event = NewEvent(now, "derived", type, payload)
            await append_events(connection, [event])
            _log.log(
                20 if problem is None else 40,
                event.type,
                problem=problem or before,
                detail=detail,
                remedy=remedy,
            )

    await retrying(store)
