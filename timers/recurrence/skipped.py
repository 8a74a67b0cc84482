"""Occurrences that calendars remove, with the reason. Pure.

Guarantee: a skipped occurrence would be one without the calendars. One that a shift moves is not
skipped; its note names the day from which it came.
"""

from datetime import datetime
from typing import NamedTuple

from timers.recurrence.occurrence import Occurrence
from timers.recurrence.parse import parse_spec
from timers.recurrence.recurrence import Recurrence
from timers.recurrence.wall_time import to_wall
from timers.recurrence.zones import zone


class SkippedOccurrence(NamedTuple):
    at: datetime
    reason: str


def skipped(recurrence: Recurrence, after: datetime, until: datetime, limit: int) -> list[SkippedOccurrence]:
    """The skipped occurrences in (after, until], oldest first, at most `limit` of those that are checked."""
    days = recurrence.days
    if days is None or days.shift is not None:
        return []
    found = []
    for occurrence in _without_calendars(recurrence).occurrences(after, until, limit):
        reason = days.reason(_wall(recurrence, occurrence).date())
        if reason is not None:
            found.append(SkippedOccurrence(occurrence.at, reason))
    return found


def moved_away(recurrence: Recurrence, after: datetime, until: datetime) -> SkippedOccurrence | None:
    """The first occurrence in (after, until] that calendars remove or move to another day."""
    days = recurrence.days
    if days is None:
        return None
    for occurrence in _without_calendars(recurrence).occurrences(after, until, 1):
        reason = days.reason(_wall(recurrence, occurrence).date())
        if reason is not None:
            moved = "" if days.shift is None else f", moved to the {days.shift} day that is allowed"
            return SkippedOccurrence(occurrence.at, reason + moved)
    return None


def _without_calendars(recurrence: Recurrence) -> Recurrence:
    return parse_spec({key: value for key, value in recurrence.spec.items() if key != "days"})


def _wall(recurrence: Recurrence, occurrence: Occurrence) -> datetime:
    if occurrence.wall is not None:
        return occurrence.wall
    return to_wall(occurrence.at, zone(recurrence.tz))
