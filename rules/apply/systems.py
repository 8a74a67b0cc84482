"""The systems and their members, when documents change.

Guarantee: what happened before the apply is told first, under the documents that held: nobody reads on while the
partitions are locked, so all facts are there, and those that still wait are taken in the order of their instants. Then
every system has exactly the members that its document names, as their series and alarms are now, and says so if that is
something else than before. Of a system that is gone a last verdict says that nobody judges it any more, so that no
alarm over its health is left behind.

The instant of the change is how far the furthest partition was read (the apply's own, if none was): what is read later
and is of an earlier instant counts from there. A replay comes to the same (`rules/replay/backtest/health.py`).

Health is locked for all of it; the log, for which the clock would wait, only when the rows change: whoever appends
notes facts about the members that it sees. Nothing is missed by that: workers wait for their partitions, what the clock
could have said about a member was settled, and what it may still say about an owner that becomes one counts already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from rules.apply.alarms import Complete
from rules.apply.impact import Decided
from rules.documents.members import Members
from rules.engine import RuleState
from rules.health.observations import Fact, held_after
from rules.health.store import (
    alarm_row,
    as_rows,
    calculated,
    known_of,
    member_row,
    read_all_facts,
    read_standing,
)
from rules.health.systems import HealthChange, Known, Systems, gone, take
from tocsin.core.db import Connection, statement
from tocsin.core.records import Records

_at = attrgetter("at")


async def change_systems(
    connection: Connection, decided: Decided, complete: Complete, settled: Sequence[Fact], at: datetime
) -> Records:
    """After all other entities. `settled`: facts that this apply found before it changed anything."""
    if decided.systems is None:
        return Records(facts=[])
    await connection.execute(statement("rules.apply/lock_health"))
    before, told, holds_from = await _conclude(connection, decided, settled)
    if not before.systems and not decided.systems:
        return Records(facts=[])
    read = [until for (lane, _), until in complete.items() if lane == "data" and until is not None]
    begins = max((*read, *([holds_from] if holds_from else [])), default=at)
    told += await _begin(connection, decided, complete, before, begins)
    return Records(calculated=[calculated(one) for one in told], facts=[])


async def _conclude(
    connection: Connection, decided: Decided, settled: Sequence[Fact]
) -> tuple[Systems, list[HealthChange], datetime | None]:
    """Under the documents that held until now."""
    members, rules = decided.members, decided.before
    systems, _, holds_from = await read_standing(
        connection, lambda owner, key: members.of_series(owner, key, rules)
    )
    told: list[HealthChange] = []
    rest = sorted(settled, key=_at)
    async for waiting in read_all_facts(connection):
        count = bisect_right(rest, waiting[-1].at, key=_at)
        told += take(systems, sorted([*waiting, *rest[:count]], key=_at), holds_from)
        rest = rest[count:]
    return systems, told + take(systems, rest, holds_from), holds_from


async def _begin(
    connection: Connection, decided: Decided, complete: Complete, before: Systems, begins: datetime
) -> list[HealthChange]:
    members, rules = Members(decided.systems or ()), decided.after
    known = await _read_now(connection, members, complete)
    systems = Systems(known, lambda owner, key: members.of_series(owner, key, rules))
    for name in sorted(members.systems):
        systems.begin(name, before.state(name))
    for row in members.rows(known.series, rules):
        systems.place(row)
    changes = gone(before, members.systems, begins) + systems.conclude(begins)
    await _replace(connection, systems, changes, begins)
    return changes


async def _replace(
    connection: Connection, systems: Systems, changes: Sequence[HealthChange], begins: datetime
) -> None:
    known = systems.known
    parameters = {
        "holds_from": begins,
        "series": as_rows(
            {"owner": owner, "key": key, "stale_since": stale_since}
            for owner, series in known.series.items()
            for key, stale_since in series.items()
        ),
        "alarms": as_rows(
            alarm_row(owner, rule, held)
            for owner, alarms in known.alarms.items()
            for rule, held in alarms.items()
        ),
        "members": as_rows(member_row(row, condition) for row, condition in systems.members.items()),
    }
    await connection.execute(statement("rules.apply/lock_log"))
    cursor = await connection.execute(statement("rules.apply/clear_systems"))
    since = dict(await cursor.fetchall()) | {one.system: one.at for one in changes}
    parameters["systems"] = as_rows(
        {"system": name, "health": verdict[0], "reason": verdict[1], "since": since[name]}
        for name in systems.systems
        if (verdict := systems.state(name)) is not None
    )
    await connection.execute(statement("rules.apply/insert_systems"), parameters)


async def _read_now(connection: Connection, members: Members, complete: Complete) -> Known:
    """From what is stored at this moment; of an owner that was no member until now, sustains that are decided may still
    have to fire."""
    cursor = await connection.execute(
        statement("rules.apply/read_members_now"), {"owners": sorted(members.owners)}
    )
    row = await cursor.fetchone()
    assert row is not None
    known = known_of((row[0], ()))
    for owner, rule, partition, state in row[1]:
        held = held_after(RuleState.from_json(state), complete["data", partition])
        if held is not None:
            known.alarms.setdefault(owner, {})[rule] = held
    return known
