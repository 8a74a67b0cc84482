"""The last occurrences of schedules, and what became of each: for strips beside lists of schedules. Reads only.

Guarantee: at most two statements for any number of schedules, and at most `count` occurrences of each. An
occurrence of an earlier generation is left out: the present one has another recurrence. One without a
record is `due` while its tick may still be committed, and left out otherwise, as the log has dropped it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from clock.explain.history import Version
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.instant import MICROSECOND, parse_instant

Row = Mapping[str, Any]
OutcomeKind = Literal["fired", "late", "missed", "paused", "due"]
_ON_TIME = timedelta(seconds=1)
_COMMITTED_WITHIN = timedelta(minutes=1)
_MOST_MISSED = 500


class RecentOutcome(NamedTuple):
    at: datetime
    """Nominal time."""
    kind: OutcomeKind
    seq: int | None
    """Of its event."""
    reason: str
    """Why it was missed, or how late it was."""


async def recent_outcomes(
    connection: Connection, schedules: Sequence[Row], now: datetime, count: int
) -> dict[Any, list[RecentOutcome]]:
    """By the id of the schedule, the oldest first."""
    possible: dict[str, tuple[Any, datetime]] = {}
    for row in schedules:
        version = _version(row)
        for at in _instants(version, now, count):
            occurrence = version.find_occurrence(at)
            if occurrence is not None:
                possible[version.event_id(row["id"], occurrence)] = (row["id"], at)
    fires = await fetch_dicts(connection, "clock.explain/find_fires", {"ids": list(possible)})
    by_id = {fire["id"].hex: fire for fire in fires}
    names = {"names": sorted({row["name"] for row in schedules}), "limit": _MOST_MISSED}
    missed = await fetch_dicts(connection, "clock.explain/list_newest_missed", names)
    rows = {row["id"]: row for row in schedules}
    outcomes: dict[Any, list[RecentOutcome]] = {row["id"]: [] for row in schedules}
    for event_id, (schedule_id, at) in possible.items():
        outcome = _outcome(rows[schedule_id], at, by_id.get(event_id), missed, now)
        if outcome is not None:
            outcomes[schedule_id].append(outcome)
    return {id: sorted(found) for id, found in outcomes.items()}


def _version(row: Row) -> Version:
    return Version(row["generation"], row["updated_at"], "", "", row["status"], row["recurrence"])


def _instants(version: Version, now: datetime, count: int) -> list[datetime]:
    """The last nominal times up to now, the newest first."""
    found: list[datetime] = []
    until = now
    while version.recurrence is not None and len(found) < count:
        occurrence = version.recurrence.latest_between(version.at, until)
        if occurrence is None:
            break
        found.append(occurrence.at)
        until = occurrence.at - MICROSECOND
    return found


def _outcome(
    row: Row, at: datetime, fire: Row | None, missed: Sequence[Row], now: datetime
) -> RecentOutcome | None:
    if fire is not None:
        late = fire["recorded_at"] - (fire["fire_at"] or fire["ts"])
        if late <= _ON_TIME:
            return RecentOutcome(at, "fired", fire["seq"], "")
        return RecentOutcome(at, "late", fire["seq"], f"{late.total_seconds():.1f} s late")
    for event in missed:
        is_same = (event["owner"], event["schedule"]) == (row["owner"], row["name"])
        if is_same and parse_instant(event["payload"]["first"]) <= at <= parse_instant(
            event["payload"]["last"]
        ):
            return RecentOutcome(at, "missed", event["seq"], str(event["payload"]["reason"]))
    if row["status"] == "paused":
        return RecentOutcome(at, "paused", None, "the schedule is paused")
    return RecentOutcome(at, "due", None, "") if now - at < _COMMITTED_WITHIN else None
