"""What a recurrence produces, and what every way of recurring must be able to do."""

from datetime import datetime, timedelta
from typing import NamedTuple, Protocol


class Occurrence(NamedTuple):
    """One nominal time. `wall` and `fold` identify a fixed-time one, whatever later tz data says."""

    at: datetime
    wall: datetime | None
    fold: int
    note: str | None


class WallPattern(Protocol):
    """A set of naive wall times."""

    def next_wall(self, after: datetime) -> datetime | None:
        """The first wall time strictly after, or None when there is none."""

    def times_of_day(self) -> tuple[timedelta, ...]:
        """A superset of the times of day it can name, sorted; for the shortest distance."""


class Source(Protocol):
    """A set of instants: one of interval-like, fixed-time, every, once."""

    def after(self, instant: datetime) -> Occurrence | None:
        """The first occurrence strictly after an aware UTC instant."""

    def minimum_distance(self) -> timedelta:
        """A lower bound of the distance between two occurrences."""
