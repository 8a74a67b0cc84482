"""The instants at which a zone changes its offset.

Guarantee: `next_transition` returns the first change strictly after an instant, exact to the
second.

Why sampled: zoneinfo does not publish its tables, and beyond the last recorded change it follows a
rule. Reading the offset once a day and bisecting where it differs costs about a millisecond per
zone and year, once. A zone that changes twice within one day and back would be missed; none has
since 1970.

Years outside the calendar have no transitions.
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from timers.recurrence.zones import zone

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_LAST_YEAR = 9998


def offset_at(tz: str, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone(tz)).utcoffset()
    return offset if offset is not None else timedelta(0)


@lru_cache(maxsize=8192)
def transitions(tz: str, year: int) -> tuple[datetime, ...]:
    """The first instants of each new offset, within one UTC year."""
    if not 2 <= year <= _LAST_YEAR:
        return ()
    found = []
    instant = datetime(year, 1, 1, tzinfo=UTC) - _SECOND
    end = datetime(year + 1, 1, 1, tzinfo=UTC) - _SECOND
    before = offset_at(tz, instant)
    while instant < end:
        following = min(instant + _DAY, end)
        after = offset_at(tz, following)
        if after != before:
            found.append(_bisect(tz, instant, following))
        instant, before = following, after
    return tuple(found)


def next_transition(tz: str, after: datetime, until: datetime) -> datetime | None:
    """The first transition in (after, until]."""
    for year in range(after.year, until.year + 1):
        instants = transitions(tz, year)
        if not instants:
            continue
        position = bisect_right(instants, after)
        if position < len(instants):
            return instants[position] if instants[position] <= until else None
    return None


def _bisect(tz: str, low: datetime, high: datetime) -> datetime:
    """The first instant in (low, high] whose offset differs from the offset at `low`."""
    before = offset_at(tz, low)
    while high - low > _SECOND:
        middle = low + ((high - low) // 2 // _SECOND) * _SECOND
        if offset_at(tz, middle) == before:
            low = middle
        else:
            high = middle
    return high
