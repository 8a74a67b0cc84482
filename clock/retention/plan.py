"""What may be dropped, and what holds the rest. Pure.

Guarantee: ranges of the log go from the oldest on, without leaving one out; a day of datapoints goes when all of it is
old. The reason that is given for the first one that stays is true of all behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple


class LogRange(NamedTuple):
    """One range of seqs, with what is left of its tables."""

    start: int
    until: int
    tables: tuple[str, ...]
    bytes: int
    newest_at: datetime | None
    """When its last record was committed; None if it is not full yet."""


class DatapointDay(NamedTuple):
    day: date
    table: str
    bytes: int

    @property
    def start(self) -> datetime:
        return datetime.combine(self.day, time(), UTC)


@dataclass(frozen=True)
class Limits:
    """How far each who needs the log has come; None: it has not begun."""

    now: datetime
    published: int | None
    """The last seq of the stream, as its publisher last saw it."""
    read: int | None
    """The last seq that the record lane has read."""
    oldest_trigger: int | None
    """The seq of the oldest event that an action under way began with; None if there is none."""
    oldest_dead: int | None
    """The same of actions that failed, as long as they can be tried again."""
    data_watermark: datetime | None
    """Up to when every partition of the data lane is complete."""


class Kept(NamedTuple):
    what: str
    why: str


@dataclass(frozen=True)
class PrunePlan:
    ranges: tuple[LogRange, ...]
    days: tuple[DatapointDay, ...]
    kept: tuple[Kept, ...]
    """The first range and the first day that stay, with the reason."""

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.ranges) + sum(day.bytes for day in self.days)


def plan_pruning(
    ranges: Iterable[LogRange],
    days: Iterable[DatapointDay],
    limits: Limits,
    record_age: timedelta,
    datapoint_age: timedelta,
) -> PrunePlan:
    kept: list[Kept] = []
    dropped: list[LogRange] = []
    for one in sorted(ranges):
        why = _holds_range(one, limits, record_age)
        if why is not None:
            kept.append(Kept(f"records {one.start} to {one.until - 1}", why))
            break
        dropped.append(one)
    gone: list[DatapointDay] = []
    for day in sorted(days):
        why = _holds_day(day, limits, datapoint_age)
        if why is not None:
            kept.append(Kept(f"datapoints of {day.day}", why))
            break
        gone.append(day)
    return PrunePlan(tuple(dropped), tuple(gone), tuple(kept))


def _holds_range(one: LogRange, limits: Limits, age: timedelta) -> str | None:
    if one.newest_at is None:
        return "records are still added to it"
    if limits.now - one.newest_at < age:
        return f"younger than {_days(age)}"
    last = one.until - 1
    if limits.published is None or limits.published < last:
        return f"the stream has them up to {limits.published or 0}"
    if limits.read is None or limits.read < last:
        return f"workers have read up to {limits.read or 0}"
    if limits.oldest_trigger is not None and limits.oldest_trigger <= last:
        return f"an action under way began with record {limits.oldest_trigger}"
    if limits.oldest_dead is not None and limits.oldest_dead <= last:
        return f"an action that can be tried again began with record {limits.oldest_dead}"
    return None


def _holds_day(one: DatapointDay, limits: Limits, age: timedelta) -> str | None:
    end = one.start + timedelta(days=1)
    if limits.now - end < age:
        return f"younger than {_days(age)}"
    if limits.data_watermark is None or limits.data_watermark < end:
        return "workers have not read them all"
    return None


def _days(age: timedelta) -> str:
    return f"{age / timedelta(days=1):g} days"


def ranges_of(
    tables: Sequence[tuple[str, int]], size: int, commits: dict[int, datetime | None]
) -> list[LogRange]:
    """From (name of a table, its bytes), such as event_1000000, to ranges. `commits`: when each range was full."""
    found: dict[int, list[tuple[str, int]]] = {}
    for name, count in tables:
        found.setdefault(int(name.rsplit("_", 1)[1]), []).append((name, count))
    return [
        LogRange(
            start,
            start + size,
            tuple(sorted(name for name, _ in of_range)),
            sum(count for _, count in of_range),
            commits.get(start),
        )
        for start, of_range in sorted(found.items())
    ]
