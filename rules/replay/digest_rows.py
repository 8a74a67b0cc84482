"""The rows that a digest finds in a simulation.

Guarantee: the rows have the columns, the order and the conditions of the live queries
(`rules/actions/sql/list_open_alarms.sql`, `list_new_events.sql`, `list_stale_series.sql`). A test
compares the columns with those of the queries. The caller cuts the rows at the limit of the digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rules.alarms.staleness import TrackedSeries
from rules.replay.alarms import AlarmRecord
from schemas.values.severities import level_name
from schemas.wire.event_facts import event_facts

_MAX_EVENTS = 10_000
Row = dict[str, Any]


def open_alarm_rows(alarms: Iterable[AlarmRecord]) -> list[Row]:
    """The highest severity and then the oldest first."""
    records = [record for record in alarms if record.state == "open"]
    records.sort(key=lambda record: (-record.alarm.severity, record.alarm.since, record.alarm.id))
    return _counted(
        {
            "id": str(record.alarm.id),
            "rule": record.alarm.rule,
            "owner": record.alarm.owner,
            "severity": level_name(record.alarm.severity),
            "since": record.alarm.since,
            "message": str(record.alarm.payload.get("message", "")),
            "acknowledged": bool(record.acknowledged_by),
            "acknowledged_by": record.acknowledged_by,
        }
        for record in records
    )


def event_rows(events: Iterable[Mapping[str, Any]], after_seq: int, until_seq: int) -> list[Row]:
    """The newest first."""
    new = [
        event
        for event in events
        if after_seq < event["seq"] <= until_seq and event["type"] != "rules-applied"
    ]
    return [event_facts(event) for event in reversed(new[-_MAX_EVENTS:])]


def stale_rows(series: Iterable[TrackedSeries]) -> list[Row]:
    """The longest first."""
    stale = [one for one in series if one.stale_since is not None]
    stale.sort(key=lambda one: (one.stale_since, one.owner, one.key))
    return _counted(
        {
            "owner": one.owner,
            "key": one.key,
            "value": one.value,
            "ts": one.ts,
            "arrived_at": one.arrived_at,
            "stale_since": one.stale_since,
        }
        for one in stale
    )


def _counted(rows: Iterable[Row]) -> list[Row]:
    """The rows with their number, which the queries return in each row."""
    listed = list(rows)
    return [{**row, "count": len(listed)} for row in listed]
