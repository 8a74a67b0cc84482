"""The rows that a digest reads in a simulation.

Guarantee: the rows have the columns, the order and the conditions of the live queries
(`list_digest_alarms.sql`, `list_new_events.sql`, `list_stale_series.sql` and `list_dead_runs.sql` in
`rules/actions/sql/`). A test compares the columns with those of the queries. What becomes of them is
`rules.actions.steps.digest_results`, as live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rules.actions.steps.digest_results import MAX_ROWS
from rules.alarms.staleness import TrackedSeries
from rules.replay.alarms import AlarmRecord
from rules.replay.log import LogEntry
from rules.runbook.states import DEAD
from schemas.wire.event_facts import event_facts

Row = dict[str, Any]


def alarm_rows(alarms: Iterable[AlarmRecord], since: datetime, now: datetime) -> list[Row]:
    """The newest first."""
    shown = [record for record in alarms if record.resolved_at is None or record.resolved_at > since]
    shown.sort(key=lambda record: record.alarm.since, reverse=True)
    return [
        {
            "id": record.alarm.id,
            "rule": record.alarm.rule,
            "owner": record.alarm.owner,
            "severity": record.alarm.severity,
            "state": record.state,
            "since": record.alarm.since,
            "opened_at": record.opened_at,
            "resolved_at": record.resolved_at,
            "acknowledged_at": record.acknowledged_at,
            "acknowledged_by": record.acknowledged_by,
            "snoozed": record.snoozed_until is not None and record.snoozed_until > now,
            "payload": record.alarm.payload,
        }
        for record in shown[:MAX_ROWS]
    ]


def event_rows(events: Iterable[Mapping[str, Any]], after_seq: int, until_seq: int) -> list[Row]:
    """The newest first."""
    new = [
        event
        for event in events
        if after_seq < event["seq"] <= until_seq and event["type"] != "rules-applied"
    ]
    return [event_facts(event) for event in reversed(new[-MAX_ROWS:])]


def stale_rows(series: Iterable[TrackedSeries]) -> list[Row]:
    """The longest first."""
    stale = [one for one in series if one.stale_since is not None]
    stale.sort(key=lambda one: (one.stale_since, one.owner, one.key))
    return [
        {
            "owner": one.owner,
            "key": one.key,
            "value": one.value,
            "ts": one.ts,
            "arrived_at": one.arrived_at,
            "stale_since": one.stale_since,
        }
        for one in stale
    ]


def dead_run_rows(log: Iterable[LogEntry], since: datetime) -> list[Row]:
    """The newest first."""
    dead = [entry for entry in log if entry.kind == "run" and entry.state in DEAD and entry.at > since]
    return [
        {
            "id": number,
            "name": entry.name,
            "rule": entry.details["rule"],
            "owner": entry.owner,
            "state": entry.state,
            "ended_at": entry.at,
            "error": entry.details.get("reason", ""),
        }
        for number, entry in enumerate(reversed(dead))
    ]
