"""A schedule's row, and its coming fires, as facts to print. Pure.

Guarantee: `coming_fires` shows every schedule once before it shows any twice, and merges the fires of all
schedules in the order in which they are due; the first of each schedule is its armed tick, the later ones
are what its recurrence says, with the same spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

from timers.recurrence import parse_spec
from tocsin.cli.schedules.last_result import result_facts
from tocsin.core.instant import MICROSECOND

Row = Mapping[str, Any]
_SHOWN = (
    *("name", "owner", "status", "generation", "type", "payload", "action"),
    *("catch_up", "window", "grace", "max_catch_up", "spread", "recurrence"),
)
_PROVENANCE = (
    "source",
    "created_by",
    "created_via",
    "created_at",
    "updated_at",
    "last_occurrence",
    "fire_at",
)
_TROUBLE = ("attempts", "last_error", "parked_at")


@dataclass(frozen=True)
class ComingFire:
    schedule: str
    owner: str
    at: datetime
    """Nominal time."""
    fire_at: datetime
    tz: str
    note: str


def schedule_facts(row: Row) -> dict[str, Any]:
    """What `--json` prints for a schedule."""
    facts: dict[str, Any] = {key: row[key] for key in _SHOWN}
    facts["tz"] = tz_of(row)
    facts["next_at"] = row["nominal_at"]
    facts |= {key: row[key] for key in _PROVENANCE}
    if row["attempts"]:
        facts |= {key: row[key] for key in _TROUBLE}
    if row.get("last_result") is not None:
        facts["last_result"] = result_facts(row["last_result"])
    return {**facts, "id": row["id"]}


def tz_of(row: Row) -> str:
    return str(row["recurrence"].get("tz", "UTC"))


def recurrence_text(row: Row) -> str:
    return parse_spec(row["recurrence"]).describe()


def coming_fires(rows: Sequence[Row], count: int) -> list[ComingFire]:
    """The next fire of each schedule, then what else comes soonest, up to `count`; in the order of time."""
    each = [_fires_of(row) for row in rows if row["status"] == "active" and row["nominal_at"] is not None]
    nearest = sorted((next(fires) for fires in each), key=_due)[:count]
    later = islice(merge(*each, key=_due), count - len(nearest))
    return sorted([*nearest, *later], key=_due)


def _due(fire: ComingFire) -> datetime:
    return fire.fire_at


def _fires_of(row: Row) -> Iterator[ComingFire]:
    recurrence = parse_spec(row["recurrence"])
    spread = row["fire_at"] - row["nominal_at"]
    # The armed tick is what will fire, even where newer tz data would say another time.
    at: datetime | None = row["nominal_at"]
    trouble = _trouble(row)
    while at is not None:
        found = recurrence.occurrence_after(at - MICROSECOND)
        note = found.note or "" if found is not None and found.at == at else ""
        yield ComingFire(row["name"], row["owner"], at, at + spread, recurrence.tz, trouble or note)
        trouble = ""
        at = recurrence.next_after(at)


def _trouble(row: Row) -> str:
    if row["parked_at"] is not None:
        return f"parked: {row['last_error']}"
    return f"failed {row['attempts']} times: {row['last_error']}" if row["attempts"] else ""
