"""One-shots: `at:` an absolute instant, or a wall time in the schedule's timezone.

Guarantee: an instant (`2026-03-10T14:00:00Z`, any offset) fires once, independent of tz data. A
wall time (no offset) follows the timezone, its gaps, folds and later corrections, like any fixed
time.

Why two: "when the contract ends" is an instant, "9am on moving day" depends on the clocks of that
day.

On failure: `InvalidInput` with both spellings.
"""

import re
from datetime import UTC, datetime, timedelta

from timers.recurrence.occurrence import Occurrence
from tocsin.core.errors import InvalidInput

_ISO = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r"(?P<offset>Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.IGNORECASE,
)


class OnceAtInstant:
    __slots__ = ("_at",)

    def __init__(self, at: datetime) -> None:
        self._at = at

    def after(self, instant: datetime) -> Occurrence | None:
        return Occurrence(self._at, None, 0, None) if self._at > instant else None

    def minimum_distance(self) -> timedelta:
        return timedelta.max


class OneWall:
    """A wall pattern of a single time."""

    __slots__ = ("_wall",)

    def __init__(self, wall: datetime) -> None:
        self._wall = wall

    def next_wall(self, after: datetime) -> datetime | None:
        return self._wall if self._wall > after else None

    def times_of_day(self) -> tuple[timedelta, ...]:
        midnight = self._wall.replace(hour=0, minute=0, second=0, microsecond=0)
        return (self._wall - midnight,)


def parse_iso(text: str) -> datetime | None:
    """An aware UTC instant, a naive wall time, or None if the text is neither."""
    match = _ISO.fullmatch(text.strip()) if len(text) <= 64 and text.isascii() else None
    if match is None:
        return None
    try:
        parsed = datetime.fromisoformat(f"{match['date']}T{match['time']}{(match['offset'] or '').upper()}")
        return parsed if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_at(text: str) -> datetime:
    parsed = parse_iso(text)
    if parsed is None:
        raise InvalidInput(
            f"at {text[:64]!r} is not a time",
            remedy="write an instant such as 2026-03-10T14:00:00Z, "
            "or a wall time in 'tz' such as 2026-03-10T14:00",
        )
    return parsed


def parse_wall(text: str, what: str) -> datetime:
    parsed = parse_iso(text)
    if parsed is None or parsed.tzinfo is not None:
        raise InvalidInput(
            f"{what} {text[:64]!r} is not a wall time",
            remedy="write it without an offset, as 2026-03-10T14:00",
        )
    return parsed
