"""Replaces the systems and their members when documents change.

Guarantee: first the health changes from before the apply are concluded, with the documents that
held. No worker reads on while the partitions are locked, so all observations are there, and the
waiting ones are taken in the order of their instants. Then every system has exactly the members of
its document, in the present state of their series and alarms, and a changed health is recorded. A
removed system gets a final health change, so that no alarm over its health is left behind.

The instant of the change is the watermark of the furthest partition (the instant of the apply, if
no partition was read). Observations that are read later and have an earlier instant count from
there. A replay does the same (`rules/replay/backtest/health.py`).

Health is locked during all of this. The record log, for which the clock would wait, is locked only
when the rows change: a session that appends records observations of the members that it sees.
Nothing is missed: workers wait for their partitions, everything that the clock could record about a
member was handled before, and what it may still record about an owner that becomes a member counts
already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from rules.apply.alarms import Watermarks
from rules.apply.impact import Impact
from rules.documents.members import Members
from rules.engine import RuleState
from rules.health.observations import Observation, member_alarm_at
from rules.health.store import (
    alarm_row,
    as_rows,
    health_datapoint,
    member_row,
    member_states,
    read_all_observations,
    read_health,
)
from rules.health.systems import HealthChange, MemberStates, Systems, observe_in_order, removal_changes
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.records import NewRecords

_at = attrgetter("at")


async def change_systems(
    connection: Connection,
    impact: Impact,
    watermarks: Watermarks,
    handled: Sequence[Observation],
    at: datetime,
) -> NewRecords:
    """Called after all other entities. `handled` are the observations of `handle_overdue`."""
    if impact.systems is None:
        return NewRecords(observations=[])
    await connection.execute(statement("rules.apply/lock_health"))
    before, changes, holds_from = await _conclude(connection, impact, handled)
    if not before.systems and not impact.systems:
        return NewRecords(observations=[])
    read = [read_at for (lane, _), read_at in watermarks.items() if lane == "data" and read_at is not None]
    changed_at = max((*read, *([holds_from] if holds_from else [])), default=at)
    changes += await _begin(connection, impact, watermarks, before, changed_at)
    return NewRecords(calculated=[health_datapoint(change) for change in changes], observations=[])


async def _conclude(
    connection: Connection, impact: Impact, handled: Sequence[Observation]
) -> tuple[Systems, list[HealthChange], datetime | None]:
    """Conclude health up to now, with the documents that held."""
    members, rules = impact.members, impact.before
    systems, _, holds_from = await read_health(
        connection, lambda owner, key: members.of_series(owner, key, rules)
    )
    changes: list[HealthChange] = []
    rest = sorted(handled, key=_at)
    async for chunk in read_all_observations(connection):
        count = bisect_right(rest, chunk[-1].at, key=_at)
        changes += observe_in_order(systems, sorted([*chunk, *rest[:count]], key=_at), holds_from)
        rest = rest[count:]
    return systems, changes + observe_in_order(systems, rest, holds_from), holds_from


async def _begin(
    connection: Connection, impact: Impact, watermarks: Watermarks, before: Systems, changed_at: datetime
) -> list[HealthChange]:
    members, rules = Members(impact.systems or ()), impact.after
    states = await _read_members(connection, members, watermarks)
    systems = Systems(states, lambda owner, key: members.of_series(owner, key, rules))
    for name in sorted(members.systems):
        systems.add_system(name, before.state(name))
    for row in members.rows(states.series, rules):
        systems.add_member(row)
    changes = removal_changes(before, members.systems, changed_at) + systems.conclude(changed_at)
    await _replace(connection, systems, changes, changed_at)
    return changes


async def _replace(
    connection: Connection, systems: Systems, changes: Sequence[HealthChange], changed_at: datetime
) -> None:
    states = systems.states
    parameters = {
        "holds_from": changed_at,
        "series": as_rows(
            {"owner": owner, "key": key, "stale_since": stale_since}
            for owner, series in states.series.items()
            for key, stale_since in series.items()
        ),
        "alarms": as_rows(
            alarm_row(owner, *subject, alarm)
            for owner, alarms in states.alarms.items()
            for subject, alarm in alarms.items()
        ),
        "members": as_rows(member_row(row, condition) for row, condition in systems.members.items()),
    }
    await connection.execute(statement("rules.apply/lock_log"))
    since = dict(await fetch_all(connection, "rules.apply/clear_systems")) | {
        change.system: change.at for change in changes
    }
    parameters["systems"] = as_rows(
        {"system": name, "health": state[0], "reason": state[1], "since": since[name]}
        for name in systems.systems
        if (state := systems.state(name)) is not None
    )
    await connection.execute(statement("rules.apply/insert_systems"), parameters)


async def _read_members(connection: Connection, members: Members, watermarks: Watermarks) -> MemberStates:
    """The present state of all members.

    A sustain of an owner that becomes a member may be due and not fired yet.
    """
    row = await fetch_one(connection, "rules.apply/read_member_states", {"owners": sorted(members.owners)})
    assert row is not None
    states = member_states(row[0], ())
    for owner, rule, instance, partition, state in row[1]:
        alarm = member_alarm_at(RuleState.from_json(state), watermarks["data", partition])
        if alarm is not None:
            states.alarms.setdefault(owner, {})[rule, instance] = alarm
    return states
