"""Records accepted holes of the log, with their audit row and their event, in one transaction.

Guarantee: `log_gap`, the audit row and the event `log-gap-recorded` commit together. Every reader
passes over a recorded gap; tombstones fill its sequences where the stream has none.
"""

from __future__ import annotations

import psycopg
import structlog

from timers.working_set import database_now
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

_log = structlog.get_logger()


async def record_gap(
    connection: Connection, settings: Settings, first: int, last: int, reason: str, actor: Actor
) -> None:
    """Record a gap. Raises a `psycopg.DatabaseError` with TS005 if the log has a record there."""
    async with connection.transaction():
        hole = {"first": first, "last": last, "reason": reason, "who": actor.who}
        await connection.execute(statement("cdc/record_gap"), hole)
        await append_gap_event(connection, settings, actor, {"from": first, "until": last, "reason": reason})


async def record_dropped(connection: Connection, settings: Settings, first: int, last: int) -> None:
    """Record a gap of dropped partitions.

    The publisher needs no operator for it: the records were dropped on purpose.
    """
    reason = "dropped from the log before it was published"
    actor = Actor("cdc", "service", await database_now(connection))
    try:
        await record_gap(connection, settings, first, last, reason, actor)
    except psycopg.errors.ExclusionViolation:
        return  # another publisher was faster
    _log.error("records dropped before they were published", first=first, last=last)


async def append_gap_event(
    connection: Connection, settings: Settings, actor: Actor, payload: dict[str, object]
) -> None:
    """Append the audit row and the event of a gap. The last statements of the transaction."""
    await record_audit(connection, actor, "record-gap", "log", settings.stream, new=payload)
    origin = "derived" if actor.via == "service" else "caused"
    event_payload = {**payload, "who": actor.who, "via": actor.via}
    await append_events(connection, [NewEvent(actor.now, origin, "log-gap-recorded", event_payload)])
