"""The result of a recurrence, and the interfaces of its implementations."""

from datetime import datetime, timedelta
from typing import NamedTuple, Protocol


class WallIdentity(NamedTuple):
    """The identity of a fixed-time occurrence, which no tz data changes."""

    wall: datetime
    fold: int

    def __str__(self) -> str:
        return f"{self.wall.isoformat()}/{self.fold}"


class Occurrence(NamedTuple):
    """One nominal time.

    `wall` and `fold` identify a fixed-time one, independent of later tz data.
    """

    at: datetime
    wall: datetime | None
    fold: int
    note: str | None


def parse_identity(text: str | None) -> WallIdentity | None:
    """The wall time and fold of an identity; None for an identity that is an instant."""
    if text is None or text[-2:] not in ("/0", "/1"):
        return None
    try:
        wall = datetime.fromisoformat(text[:-2])
    except ValueError:
        return None
    return WallIdentity(wall, int(text[-1])) if wall.tzinfo is None else None


class WallPattern(Protocol):
    """A set of naive wall times."""

    def next_wall(self, after: datetime) -> datetime | None:
        """The first wall time strictly after `after`, or None."""

    def times_of_day(self) -> tuple[timedelta, ...]:
        """A superset of the times of day it can name, sorted. Used for the shortest distance."""


class OccurrenceSource(Protocol):
    """A set of instants: interval-like, fixed-time, every or once."""

    def after(self, instant: datetime) -> Occurrence | None:
        """The first occurrence strictly after an aware UTC instant."""

    def minimum_distance(self) -> timedelta:
        """A lower bound of the distance between two occurrences."""
