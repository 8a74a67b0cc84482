"""The plan of a prune: which partitions may be dropped, and why the next ones may not. Pure.

Guarantee: ranges of the log are dropped from the oldest on, without leaving one out. A day of
datapoints is dropped when all of it is old. The reason given for the first range or day that stays
is true for all later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple


class LogRange(NamedTuple):
    """One range of seqs, with its remaining tables."""

    start: int
    until: int
    tables: tuple[str, ...]
    bytes: int
    newest_at: datetime | None
    """When its last record was committed; None if the range is not full yet."""


class DatapointDay(NamedTuple):
    """The partition of one day of datapoints."""

    day: date
    table: str
    bytes: int

    @property
    def start(self) -> datetime:
        return datetime.combine(self.day, time(), UTC)


@dataclass(frozen=True)
class Limits:
    """How far each reader of the log has come; None if it has not begun."""

    now: datetime
    published: int | None
    """The last seq of the stream, from the last stream check."""
    read: int | None
    """The last seq that the record lane has read. An instance without workers prunes its log."""
    oldest_trigger: int | None
    """The seq of the oldest event that started an active run; None if there is none."""
    oldest_dead: int | None
    """The seq of the oldest event that started a dead run that can be retried."""
    data_watermark: datetime | None
    """The lowest watermark of the data lane."""


class KeptItem(NamedTuple):
    """A part of the data that stays, and the reason."""

    what: str
    why: str


@dataclass(frozen=True)
class PrunePlan:
    ranges: tuple[LogRange, ...]
    days: tuple[DatapointDay, ...]
    kept: tuple[KeptItem, ...]
    """The first range and the first day that stay, each with the reason."""

    @property
    def bytes(self) -> int:
        return sum(log_range.bytes for log_range in self.ranges) + sum(day.bytes for day in self.days)


def plan_pruning(
    ranges: Iterable[LogRange],
    days: Iterable[DatapointDay],
    limits: Limits,
    record_age: timedelta,
    datapoint_age: timedelta,
) -> PrunePlan:
    """Decide which ranges and days to drop: all up to the first that must stay."""
    kept: list[KeptItem] = []
    dropped_ranges: list[LogRange] = []
    for log_range in sorted(ranges):
        why = _reason_to_keep_range(log_range, limits, record_age)
        if why is not None:
            kept.append(KeptItem(f"records {log_range.start} to {log_range.until - 1}", why))
            break
        dropped_ranges.append(log_range)
    dropped_days: list[DatapointDay] = []
    for day in sorted(days):
        why = _reason_to_keep_day(day, limits, datapoint_age)
        if why is not None:
            kept.append(KeptItem(f"datapoints of {day.day}", why))
            break
        dropped_days.append(day)
    return PrunePlan(tuple(dropped_ranges), tuple(dropped_days), tuple(kept))


def _reason_to_keep_range(log_range: LogRange, limits: Limits, age: timedelta) -> str | None:
    if log_range.newest_at is None:
        return "records are still added to it"
    if limits.now - log_range.newest_at < age:
        return f"younger than {_days(age)}"
    last = log_range.until - 1
    if limits.published is None or limits.published < last:
        return f"the stream has them up to {limits.published or 0}"
    if limits.read is not None and limits.read < last:
        return f"workers have read up to {limits.read}"
    if limits.oldest_trigger is not None and limits.oldest_trigger <= last:
        return f"an active run was started by record {limits.oldest_trigger}"
    if limits.oldest_dead is not None and limits.oldest_dead <= last:
        return f"a dead run that can be retried was started by record {limits.oldest_dead}"
    return None


def _reason_to_keep_day(day: DatapointDay, limits: Limits, age: timedelta) -> str | None:
    end = day.start + timedelta(days=1)
    if limits.now - end < age:
        return f"younger than {_days(age)}"
    if limits.data_watermark is None or limits.data_watermark < end:
        return "workers have not read them all yet"
    return None


def _days(age: timedelta) -> str:
    return f"{age / timedelta(days=1):g} days"


def ranges_of(
    tables: Sequence[tuple[str, int]], size: int, commits: dict[int, datetime | None]
) -> list[LogRange]:
    """Group tables such as event_1000000, given with their bytes, into ranges.

    `commits` has the instant at which each range was full.
    """
    by_start: dict[int, list[tuple[str, int]]] = {}
    for name, bytes in tables:
        by_start.setdefault(int(name.rsplit("_", 1)[1]), []).append((name, bytes))
    return [
        LogRange(
            start,
            start + size,
            tuple(sorted(name for name, _ in of_range)),
            sum(bytes for _, bytes in of_range),
            commits.get(start),
        )
        for start, of_range in sorted(by_start.items())
    ]
