"""Where systems stand, as rows: what is decided about their members, read into `Systems` and written back.

Only who holds the lock of health (`rules.health/try_health`, `rules.health/lock_health`) reads and writes here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from psycopg.types.json import Jsonb

from rules.documents.members import MemberRow
from rules.health.observations import Fact, Held, What
from rules.health.rollup import Condition
from rules.health.systems import SHOWN, WORST, HealthChange, Join, Known, Systems
from schemas.wire.calculated import HEALTH_KEY
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.instant import parse_instant
from tocsin.core.records import NewCalculated

_AT_ONCE = 1000


class Waiting(NamedTuple):
    """A row of `member_observation`."""

    id: int
    fact: Fact


class Standing(NamedTuple):
    systems: Systems
    members: Mapping[MemberRow, Condition]
    """As they are stored."""
    holds_from: datetime | None
    """No verdict is for an earlier instant; None: there are no systems."""


async def read_facts(connection: Connection, until: datetime, most: int) -> list[Waiting]:
    """In the order in which they are taken: so many, and the others of the last one's instant, because an instant is
    concluded once."""
    given = {"until": until, "most": most}
    rows = await fetch_all(connection, "rules.health/read_facts", given)
    return [_waiting(*row) for row in rows]


async def read_all_facts(connection: Connection) -> AsyncIterator[list[Fact]]:
    """In the order in which they are taken, a page at a time, and an instant as a whole: there may be very many while a
    partition is far behind."""
    page: list[Fact] = []
    async with connection.cursor(name="facts") as cursor:
        await cursor.execute(statement("rules.health/read_all_facts"))
        while rows := await cursor.fetchmany(_AT_ONCE):
            page += (_waiting(*row).fact for row in rows)
            whole = bisect_left(page, page[-1].at, key=lambda fact: fact.at)
            if whole:
                yield page[:whole]
                page = page[whole:]
    if page:
        yield page


def _waiting(
    id: int,
    owner: str,
    at: datetime,
    what: What,
    subject: str,
    severity: int,
    since: datetime,
    keys: Sequence[str],
) -> Waiting:
    held = Held(severity, since, frozenset(keys)) if keys else None
    return Waiting(id, Fact(owner, at, what, subject, held))


async def read_standing(connection: Connection, join: Join, owners: Sequence[str] | None = None) -> Standing:
    """Of the systems that have members of some owners; without `owners` of all."""
    known = known_of(await _row(connection, statement("rules.health/read_known"), {"owners": owners}))
    given = {"owners": owners, "worst": list(WORST), "shown": SHOWN}
    told, rows, others, worst = await _row(connection, statement("rules.health/read_standing"), given)
    systems = Systems(known, join)
    for name, health, reason, _ in told:
        systems.begin(name, (health, reason))
    stored = {MemberRow(*row): condition for *row, condition in rows}
    for row, condition in stored.items():
        systems.place(row, condition)
    for name, condition, required, members in others:
        systems.count(name, condition, required, members)
    for *row, condition in worst:
        systems.mention(MemberRow(*row), condition)
    return Standing(systems, stored, max((parse_instant(one[3]) for one in told), default=None))


def known_of(row: Sequence[Any]) -> Known:
    known = Known()
    series, alarms = row
    for owner, key, stale_since in series:
        known.series.setdefault(owner, {})[key] = None if stale_since is None else parse_instant(stale_since)
    for owner, rule, severity, since, keys in alarms:
        known.alarms.setdefault(owner, {})[rule] = Held(severity, parse_instant(since), frozenset(keys))
    return known


async def write_standing(
    connection: Connection, standing: Standing, waiting: Sequence[Waiting], changes: Sequence[HealthChange]
) -> None:
    """What the facts did to where systems stand."""
    systems, stored, _ = standing
    subjects = {(fact.owner, fact.subject) for _, fact in waiting if fact.what == "alarm"}
    alarms = {one: systems.known.alarms.get(one[0], {}).get(one[1]) for one in subjects}
    series = {(fact.owner, fact.subject) for _, fact in waiting if fact.what != "alarm"}
    parameters = {
        "facts": [id for id, _ in waiting],
        "series": as_rows(
            {"owner": owner, "key": key, "stale_since": systems.known.series[owner][key]}
            for owner, key in series
        ),
        "ended": as_rows({"owner": owner, "rule": rule} for (owner, rule), one in alarms.items() if not one),
        "alarms": as_rows(alarm_row(*subject, held) for subject, held in alarms.items() if held),
        "met": as_rows(row._asdict() for row in stored if row not in systems.members),
        "members": as_rows(
            member_row(row, condition)
            for row, condition in systems.members.items()
            if stored.get(row) != condition
        ),
        "systems": as_rows(
            {"system": one.system, "health": one.health, "reason": one.reason, "since": one.at}
            for one in {one.system: one for one in changes}.values()
        ),
    }
    await connection.execute(statement("rules.health/put_health"), parameters)


def alarm_row(owner: str, rule: str, held: Held) -> dict[str, Any]:
    return {"owner": owner, "rule": rule, **held._asdict(), "keys": sorted(held.keys)}


def member_row(row: MemberRow, condition: Condition) -> dict[str, Any]:
    return {**row._asdict(), "condition": condition}


def as_rows(rows: Iterable[Mapping[str, Any]]) -> Jsonb:
    """For `jsonb_to_recordset`."""
    return Jsonb([{name: _plain(value) for name, value in row.items()} for row in rows])


def calculated(change: HealthChange) -> NewCalculated:
    return NewCalculated(change.system, HEALTH_KEY, change.at, "health", change.payload, uuid4())


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


async def _row(connection: Connection, query: bytes, given: Mapping[str, Any]) -> tuple[Any, ...]:
    rows = await (await connection.execute(query, given)).fetchall()
    (row,) = rows
    return tuple(row)
