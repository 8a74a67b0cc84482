"""Erases the data of an owner, table by table and stream by stream.

Guarantee: the erasure begins with an event `owner-forgotten` and an audit row, in one transaction. It
begins to erase when workers have read that event: nothing that was recorded before is still needed. It
ends with another audit row, with the number of erased rows and messages of each table and stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from nats.js.client import JetStreamContext
from psycopg.types.json import Jsonb

from clock.time_source import steady_s
from rules.erasure.streams import delete_letters, purge_datapoints
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, fetch_one, fetch_value, retrying, statement
from tocsin.core.errors import Refused
from tocsin.core.instant import instant_text
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

FORGOTTEN = "owner-forgotten"
_SEQS_AT_ONCE = 20_000
_DATAPOINTS_AT_ONCE = 10_000
_PATIENCE_S = 30.0
_POLL_S = 0.2
Report = Callable[[str, int], None]
"""Gets a table or stream, and how much of it was erased."""


class Erasure(NamedTuple):
    seq: int
    """The event that announces it."""
    arrived_until: datetime


async def begin_or_continue(connection: Connection, owner: str, actor: Actor) -> Erasure:
    """The erasure of the owner that was interrupted, or a new one."""
    found = await fetch_one(connection, "rules.erasure/find_erasure", {"owner": owner})
    if found is not None:
        return Erasure(*found)

    async def once() -> int:
        async with connection.transaction():
            await record_audit(connection, actor, "forget", "owner", owner, owner=owner)
            payload = {"arrived_until": instant_text(actor.now)}
            seq = await append_events(
                connection, [NewEvent(actor.now, "caused", FORGOTTEN, payload, owner=owner)]
            )
            values = {"seq": seq, "arrived_until": actor.now}
            await connection.execute(statement("rules.erasure/begin_erasure"), values)
        return seq

    return Erasure(await retrying(once), actor.now)


async def erase(
    connection: Connection,
    js: JetStreamContext,
    settings: Settings,
    owner: str,
    erasure: Erasure,
    actor: Actor,
    report: Report,
) -> dict[str, int]:
    """Erase everything. Returns how much of each table and stream."""
    horizon = await _wait_until_read(connection, erasure.seq)
    counts: dict[str, int] = {}

    def note(what: str, count: int) -> None:
        counts[what] = counts.get(what, 0) + count
        report(what, counts[what])

    note("records", await _erase_records(connection, erasure, horizon))
    note("kept events", await _erased(connection, "erase_kept_events", erasure))
    note("datapoints", await _delete_datapoints(connection, owner, erasure))
    values = {"owner": owner, "arrived_until": erasure.arrived_until}
    for what, name in (
        ("series", "delete_series"),
        ("rule states", "delete_states"),
        ("alarms", "redact_alarms"),
        ("runs", "redact_runs"),
        ("schedules", "redact_schedules"),
    ):
        note(what, await _execute(connection, name, values))
    note("audit rows", await _erased(connection, "erase_audit", erasure))
    note(settings.data_stream, await purge_datapoints(connection, js, settings, owner))
    for stream in (settings.dead_stream, f"{settings.namespace}-consumers-dead"):
        note(stream, await delete_letters(js, settings, stream, owner, erasure.arrived_until))
    await _end(connection, owner, erasure, actor, counts)
    return counts


async def _wait_until_read(connection: Connection, seq: int) -> int:
    """Wait until the record lane has read the event of the erasure. Returns where the log begins."""
    patient_until_s = steady_s() + _PATIENCE_S
    while True:
        row = await fetch_one(connection, "rules.erasure/read_positions")
        assert row is not None
        horizon, read = row
        # Without a record lane no worker has ever run, and none needs the records.
        if read is None or read >= seq:
            return int(horizon)
        if steady_s() > patient_until_s:
            raise Refused(
                f"the record lane has read up to {read}, not to {seq} yet, where the erasure begins",
                remedy="start a worker and a publisher, then run the command again: it continues",
            )
        await asyncio.sleep(_POLL_S)


async def _erase_records(connection: Connection, erasure: Erasure, horizon: int) -> int:
    erased = 0
    for first in range(horizon, erasure.seq, _SEQS_AT_ONCE):
        values = {"seq": erasure.seq, "first": first, "last": first + _SEQS_AT_ONCE - 1}
        erased += int(await fetch_value(connection, "rules.erasure/erase_records", values))
    return erased


async def _delete_datapoints(connection: Connection, owner: str, erasure: Erasure) -> int:
    values = {"owner": owner, "arrived_until": erasure.arrived_until, "limit": _DATAPOINTS_AT_ONCE}
    deleted = 0
    while count := await _execute(connection, "delete_datapoints", values):
        deleted += count
    return deleted


async def _execute(connection: Connection, name: str, values: dict[str, object]) -> int:
    return (await connection.execute(statement(f"rules.erasure/{name}"), values)).rowcount


async def _erased(connection: Connection, name: str, erasure: Erasure) -> int:
    return int(await fetch_value(connection, f"rules.erasure/{name}", {"seq": erasure.seq}))


async def _end(
    connection: Connection, owner: str, erasure: Erasure, actor: Actor, counts: dict[str, int]
) -> None:
    async with connection.transaction():
        await record_audit(
            connection, actor, "forgot", "owner", owner, owner=owner, new={"seq": erasure.seq, **counts}
        )
        values = {"seq": erasure.seq, "counts": Jsonb(counts)}
        await connection.execute(statement("rules.erasure/end_erasure"), values)
