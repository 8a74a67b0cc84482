"""Deletes rows that have outlived the records or datapoints that they belong to, a chunk at a time.

Guarantee:
- Rows that belong to the log (alarms, silences, runs, lineages, keys of external events, ended schedules,
  versions of documents) are deleted when their last record has left the log. Starts that count
  against a rate limit are deleted when no version of their action_rule is left.
- Rows that belong to datapoints (a series, the states of rules about it) are deleted when their
  last datapoint has been dropped and none has arrived for `series_retention_d`. If a deleted series
  was stale, an event `series-forgotten` is appended, one for each owner. Arrival gaps are deleted
  when they lie before all remaining datapoints and no fresh series needs them.
- Audit rows are deleted by their age (`audit_retention_d`), except the last one of each existing
  schedule before that age.
- Everything that is open, active or armed stays, however old, and so does everything that a replay
  of the remaining records needs.

How: a chunk of candidates is read without a lock, in the order of an index. Those that may be
deleted are deleted by key in one short transaction that skips rows which another transaction has
locked and checks again what may have changed. So no other transaction ever waits for it, and a
killed run leaves whole chunks done: the next run continues with the rest.
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
from tocsin.core.db import Connection, fetch_all, fetch_one, retrying
from tocsin.core.instant import instant_text
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

_CHUNK = 1000
# Larger than `_CHUNK`, because counting holds no lock.
_CHUNK_WHEN_COUNTING = 20_000
_KEYS_SHOWN = 100
# A replay of the first remaining datapoints also needs the gaps since the last arrivals before them.
_LONGEST_WARM_UP = timedelta(days=7)
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_BEGINNING = "-infinity"
Row = tuple[Any, ...]
Progress = Callable[[str, int], None]
"""Gets the table and the number of its deleted rows."""


class RowKind(NamedTuple):
    """A table whose old rows are deleted, and the statements that find and delete them."""

    table: str
    list_statement: str
    """A statement that lists a chunk after a key: the key columns as text, and whether the row may
    be deleted."""
    delete_statement: str
    """A statement that deletes rows by key and returns them."""
    first_key: tuple[str, ...]
    """A key before all others."""
    deletion_events: Callable[[Sequence[Row], datetime], list[NewEvent]] | None = None
    """Events to append about deleted rows, in the same transaction."""


@dataclass(frozen=True)
class RowBounds:
    """The bounds before which rows are old."""

    horizon: int
    horizon_at: datetime | None
    """When the record at the horizon was recorded; None if no record has left the log yet."""
    datapoints_from: datetime
    """The first instant of which datapoints are kept."""
    now: datetime
    dead_actions_until: datetime
    """The instant before which dead runs are old. The next three are such instants as well."""
    event_keys_until: datetime
    audit_until: datetime
    series_until: datetime
    gaps_until: datetime


def _forgotten_series_events(rows: Sequence[Row], now: datetime) -> list[NewEvent]:
    """One event for each owner of deleted series that were stale."""
    stale = sorted(row[:3] for row in rows if row[3] == "stale")
    events = []
    for owner, of_owner in groupby(stale, key=itemgetter(0)):
        series = list(of_owner)
        payload = {
            "count": len(series),
            "keys": [key for _, key, _ in series[:_KEYS_SHOWN]],
            "last_arrival": instant_text(max(arrived_at for _, _, arrived_at in series)),
        }
        events.append(NewEvent(now, "derived", "series-forgotten", payload, owner=owner))
    return events


# In the order of deletion: a schedule stays while a run refers to it, and a state while its series
# exists.
ROW_KINDS = (
    RowKind("alarm", "list_ended_alarms", "delete_alarms", (_BEGINNING, _NO_UUID)),
    RowKind("silence", "list_ended_silences", "delete_silences", (_BEGINNING, _NO_UUID)),
    RowKind("action", "list_ended_actions", "delete_actions", (_BEGINNING, _NO_UUID)),
    RowKind("event_lineage", "list_lineages", "delete_lineages", (_BEGINNING, _NO_UUID)),
    RowKind("ingest_event", "list_event_keys", "delete_event_keys", (_BEGINNING, "")),
    RowKind("schedule", "list_ended_schedules", "delete_schedules", (_BEGINNING, _NO_UUID)),
    RowKind("audit", "list_audit_rows", "delete_audit_rows", (_BEGINNING, "0")),
    RowKind("rule_version", "list_old_versions", "delete_versions", ("", "", "0")),
    RowKind("rule_cutover", "list_old_cutovers", "delete_cutovers", ("", "0", "0")),
    RowKind("arrival_gap", "list_old_gaps", "delete_gaps", (_BEGINNING, "0")),
    RowKind("action_limit", "list_old_limits", "delete_limits", ("",)),
    RowKind("current_value", "list_old_series", "delete_series", ("", ""), _forgotten_series_events),
    RowKind("rule_state", "list_old_states", "delete_states", ("", "", "")),
)


async def read_bounds(
    connection: Connection, settings: Settings, horizon: int = 1, day: date | None = None
) -> RowBounds:
    """Read the bounds.

    For a preview, `horizon` and `day` are where the log and the datapoints will begin after the
    pruning. A value before their present beginning has no effect.
    """
    row = await fetch_one(connection, "clock.retention/read_bounds", {"horizon": horizon, "day": day})
    assert row is not None
    horizon, horizon_at, datapoints_from, now = row
    # A replay finds its series by their current values, so these stay as long as anything it reads.
    series_d = max(settings.series_retention_d, settings.datapoint_retention_d, settings.record_retention_d)
    return RowBounds(
        horizon,
        horizon_at,
        datapoints_from,
        now,
        dead_actions_until=now - timedelta(days=settings.dead_action_retention_d),
        event_keys_until=now - timedelta(days=settings.event_key_retention_d),
        audit_until=now - timedelta(days=settings.audit_retention_d),
        series_until=now - timedelta(days=series_d),
        gaps_until=datapoints_from - _LONGEST_WARM_UP,
    )


async def count_rows(connection: Connection, kind: RowKind, bounds: RowBounds) -> int:
    """Count the rows that would be deleted."""
    return sum([len(keys) async for keys in _chunks(connection, kind, bounds, _CHUNK_WHEN_COUNTING)])


async def remove_rows(
    connection: Connection,
    kind: RowKind,
    bounds: RowBounds,
    *,
    chunk: int = _CHUNK,
    rest_factor: float = 0.0,
    on_progress: Progress | None = None,
) -> int:
    """Delete the rows and return how many there were.

    `rest_factor` is the pause after a chunk, as a multiple of the time that finding and deleting it
    took.
    """
    deleted = 0
    began_s = steady_s()
    async for keys in _chunks(connection, kind, bounds, chunk):
        removed = await _remove_chunk(connection, kind, bounds, keys) if keys else 0
        deleted += removed
        if on_progress is not None and removed:
            on_progress(kind.table, deleted)
        await asyncio.sleep(rest_factor * (steady_s() - began_s))
        began_s = steady_s()
    return deleted


async def _remove_chunk(connection: Connection, kind: RowKind, bounds: RowBounds, keys: Sequence[Row]) -> int:
    columns = {f"key_{number}": list(column) for number, column in enumerate(zip(*keys, strict=True), 1)}

    async def once() -> int:
        async with connection.transaction():
            rows = await fetch_all(
                connection, f"clock.retention/{kind.delete_statement}", {**vars(bounds), **columns}
            )
            events = kind.deletion_events(rows, bounds.now) if kind.deletion_events is not None else []
            if events:
                await append_events(connection, events)
        return len(rows)

    return await retrying(once)


async def _chunks(
    connection: Connection, kind: RowKind, bounds: RowBounds, chunk: int
) -> AsyncIterator[Sequence[Row]]:
    """Check all rows, `chunk` at a time, and yield the keys of each chunk that may be deleted."""
    parameters: Mapping[str, Any] = {**vars(bounds), "limit": chunk}
    after = kind.first_key
    while True:
        rows = await fetch_all(
            connection, f"clock.retention/{kind.list_statement}", {**parameters, "after": list(after)}
        )
        yield [row[:-1] for row in rows if row[-1]]
        if len(rows) < chunk:
            return
        after = rows[-1][:-1]
