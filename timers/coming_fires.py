"""Computes the coming fires of schedules, for `tocsin upcoming`, `tocsin up` and calendar feeds.

Guarantee: the next fire of each schedule comes before the second fire of any. Fires are in the
order in which they are due. The first fire of a schedule is its armed timer; later ones follow from
its recurrence, with the same spread.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

from timers.recurrence import parse_spec
from tocsin.core.instant import MICROSECOND

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ComingFire:
    schedule: str
    owner: str
    at: datetime
    """Nominal time."""
    fire_at: datetime
    tz: str
    note: str


def tz_of(row: Row) -> str:
    return str(row["recurrence"].get("tz", "UTC"))


def coming_fires(rows: Sequence[Row], count: int) -> list[ComingFire]:
    """The next fire of each schedule, then the soonest of the rest, up to `count`; in the order of time."""
    fires = [_fires_of(row) for row in rows if row["status"] == "active" and row["nominal_at"] is not None]
    first = sorted((next(of_schedule) for of_schedule in fires), key=_due)[:count]
    later = islice(merge(*fires, key=_due), count - len(first))
    return sorted([*first, *later], key=_due)


def _due(fire: ComingFire) -> datetime:
    return fire.fire_at


def _fires_of(row: Row) -> Iterator[ComingFire]:
    recurrence = parse_spec(row["recurrence"])
    spread = row["fire_at"] - row["nominal_at"]
    # The armed timer decides about the first fire, even if newer tz data would give another time.
    at: datetime | None = row["nominal_at"]
    failure = _failure_text(row)
    while at is not None:
        occurrence = recurrence.occurrence_after(at - MICROSECOND)
        note = occurrence.note or "" if occurrence is not None and occurrence.at == at else ""
        yield ComingFire(row["name"], row["owner"], at, at + spread, recurrence.tz, failure or note)
        failure = ""
        at = recurrence.next_after(at)


def _failure_text(row: Row) -> str:
    if row["parked_at"] is not None:
        return f"parked: {row['last_error']}"
    return f"failed {row['attempts']} times: {row['last_error']}" if row["attempts"] else ""
