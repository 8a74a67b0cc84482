"""Rows that have outlived what they belong to, and their removal, a page at a time.

Guarantee: a row goes when nothing that is left refers to it. What hangs on the log (alarms, actions, lineages, keys of
events that were handed in, schedules that ended, versions of documents) goes when its last record has left the log;
what hangs on datapoints (a series, what rules remember of it) when its last datapoint has, and it has been silent
for long. Whatever is open, under way or armed stays, however old, and so does what a replay of anything that is left
reads. A series that was found stale does not vanish without a word: `series-forgotten` is an event.

How: a page of candidates is read without a lock, in the order of an index; those that may go are removed by key in
one short transaction that passes over rows which somebody holds, and looks again at what may have changed. So nobody
ever waits for it, and one that is killed leaves whole pages done: the next run goes on with what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from clock.time_source import steady_s
from tocsin.core.db import Connection, fetch_one, retrying, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

_AT_ONCE = 1000
_COUNTED_AT_ONCE = 20_000
_KEYS_TOLD = 100
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_EVER = "-infinity"
Row = tuple[Any, ...]
Progress = Callable[[str, int], None]
"""Told the table and how many of its rows are gone."""


class Kind(NamedTuple):
    table: str
    listed_by: str
    """A page behind a key: the columns of the key as text, and whether the row may go."""
    deleted_by: str
    """Returns the rows that are gone."""
    begin: tuple[str, ...]
    """A key before all others."""
    told: Callable[[Sequence[Row], datetime], list[NewEvent]] | None = None


@dataclass(frozen=True)
class Bounds:
    """What lies before these is old. Where there is no `horizon_at`, nothing has left the log yet."""

    horizon: int
    horizon_at: datetime | None
    datapoints_from: datetime
    now: datetime
    dead_until: datetime
    keys_until: datetime
    audit_until: datetime
    silent_until: datetime


def _forgotten(rows: Sequence[Row], now: datetime) -> list[NewEvent]:
    """One event for each owner of series that had been found stale."""
    stale = sorted(row[:3] for row in rows if row[3] == "stale")
    events = []
    for owner, of_owner in groupby(stale, key=itemgetter(0)):
        found = list(of_owner)
        payload = {
            "count": len(found),
            "keys": [key for _, key, _ in found[:_KEYS_TOLD]],
            "last_arrival": max(arrived_at for _, _, arrived_at in found).isoformat(),
        }
        events.append(NewEvent(now, "derived", "series-forgotten", payload, owner=owner))
    return events


# Actions before the schedules that carried them, series before what rules remember of them.
KINDS = (
    Kind("alarm", "list_ended_alarms", "delete_alarms", (_EVER, _NO_UUID)),
    Kind("action", "list_ended_actions", "delete_actions", (_EVER, _NO_UUID)),
    Kind("event_lineage", "list_lineages", "delete_lineages", (_EVER, _NO_UUID)),
    Kind("ingest_event", "list_event_keys", "delete_event_keys", (_EVER, "")),
    Kind("schedule", "list_ended_schedules", "delete_schedules", (_EVER, _NO_UUID)),
    Kind("audit", "list_acts", "delete_acts", (_EVER, "0")),
    Kind("rule_version", "list_old_versions", "delete_versions", ("", "", "0")),
    Kind("rule_cutover", "list_old_switches", "delete_switches", ("", "0", "0")),
    Kind("action_limit", "list_old_limits", "delete_limits", ("",)),
    Kind("current_value", "list_silent_series", "delete_series", ("", ""), _forgotten),
    Kind("rule_state", "list_old_states", "delete_states", ("", "")),
)


async def read_bounds(
    connection: Connection, settings: Settings, horizon: int = 1, day: date | None = None
) -> Bounds:
    """`horizon` and `day`: where the log and the datapoints would begin, if later than they do."""
    given = {"horizon": horizon, "day": day}
    row = await fetch_one(connection, "clock.retention/read_bounds", given)
    assert row is not None
    horizon, horizon_at, datapoints_from, now = row
    # A replay finds the series that it is about by their current values.
    silent_d = max(settings.series_retention_d, settings.datapoint_retention_d, settings.record_retention_d)
    return Bounds(
        horizon,
        horizon_at,
        datapoints_from,
        now,
        dead_until=now - timedelta(days=settings.dead_action_retention_d),
        keys_until=now - timedelta(days=settings.event_key_retention_d),
        audit_until=now - timedelta(days=settings.audit_retention_d),
        silent_until=now - timedelta(days=silent_d),
    )


async def count_rows(connection: Connection, kind: Kind, bounds: Bounds) -> int:
    """How many would go."""
    return sum([len(page) async for page in _pages(connection, kind, bounds, _COUNTED_AT_ONCE)])


async def remove_rows(
    connection: Connection,
    kind: Kind,
    bounds: Bounds,
    *,
    at_once: int = _AT_ONCE,
    rest: float = 0.0,
    tell: Progress | None = None,
) -> int:
    """How many are gone. `rest`: how long to pause after a page, as a share of what finding and removing it took."""
    gone = 0
    began_s = steady_s()
    async for page in _pages(connection, kind, bounds, at_once):
        removed = await _remove(connection, kind, bounds, page) if page else 0
        gone += removed
        if tell is not None and removed:
            tell(kind.table, gone)
        await asyncio.sleep(rest * (steady_s() - began_s))
        began_s = steady_s()
    return gone


async def _remove(connection: Connection, kind: Kind, bounds: Bounds, page: Sequence[Row]) -> int:
    columns = {f"key_{place}": list(column) for place, column in enumerate(zip(*page, strict=True), 1)}
    given = {**vars(bounds), **columns}
    query = statement(f"clock.retention/{kind.deleted_by}")

    async def once() -> int:
        async with connection.transaction():
            rows = await (await connection.execute(query, given)).fetchall()
            events = kind.told(rows, bounds.now) if kind.told is not None else []
            if events:
                await append_events(connection, events)
        return len(rows)

    return await retrying(once)


async def _pages(
    connection: Connection, kind: Kind, bounds: Bounds, at_once: int
) -> AsyncIterator[Sequence[Row]]:
    """The keys of rows that may go, page by page of all that are looked at."""
    given: Mapping[str, Any] = {**vars(bounds), "most": at_once}
    query = statement(f"clock.retention/{kind.listed_by}")
    after = kind.begin
    while True:
        rows = await (await connection.execute(query, {**given, "after": list(after)})).fetchall()
        yield [row[:-1] for row in rows if row[-1]]
        if len(rows) < at_once:
            return
        after = rows[-1][:-1]
