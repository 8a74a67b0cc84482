"""Reads and writes the health of systems: decided states as rows, and `Systems` from them.

Only the holder of the lock of health (`rules.health/try_lock_health`, `rules.apply/lock_health`)
calls this.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from psycopg.types.json import Jsonb

from rules.documents.members import MemberRow
from rules.health.observations import MemberAlarm, Observation
from rules.health.rollup import MemberCondition
from rules.health.systems import (
    MAX_SHOWN_MEMBERS,
    WORST_FIRST,
    FindMembers,
    HealthChange,
    MemberStates,
    Systems,
)
from schemas.wire.calculated import HEALTH_KEY
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.instant import parse_instant
from tocsin.core.records import NewCalculated

_CHUNK = 1000


class StoredObservation(NamedTuple):
    """A row of `member_observation`."""

    id: int
    observation: Observation


class StoredHealth(NamedTuple):
    systems: Systems
    members: Mapping[MemberRow, MemberCondition]
    """The stored conditions."""
    holds_from: datetime | None
    """The instant of the apply that made the systems, before which no health may change; None:
    there are none."""


async def read_observations(connection: Connection, until: datetime, limit: int) -> list[StoredObservation]:
    """Observations up to an instant, in order: `limit` of them, and the others of the last instant.

    An instant is concluded once, so its observations are never divided.
    """
    parameters = {"until": until, "limit": limit}
    rows = await fetch_all(connection, "rules.health/read_observations", parameters)
    return [_observation(row) for row in rows]


async def read_all_observations(connection: Connection) -> AsyncIterator[list[Observation]]:
    """All observations in order, in chunks that never divide an instant.

    There may be very many while a partition is far behind.
    """
    chunk: list[Observation] = []
    async with connection.cursor(name="observations") as cursor:
        await cursor.execute(statement("rules.health/read_all_observations"))
        while rows := await cursor.fetchmany(_CHUNK):
            chunk += (_observation(row).observation for row in rows)
            whole = bisect_left(chunk, chunk[-1].at, key=lambda observation: observation.at)
            if whole:
                yield chunk[:whole]
                chunk = chunk[whole:]
    if chunk:
        yield chunk


def _observation(row: Sequence[Any]) -> StoredObservation:
    id, owner, at, kind, subject, severity, since, keys, instance = row
    alarm = MemberAlarm(severity, since, frozenset(keys)) if keys else None
    return StoredObservation(id, Observation(owner, at, kind, subject, instance, alarm))


async def read_health(
    connection: Connection, find_members: FindMembers, owners: Sequence[str] | None = None
) -> StoredHealth:
    """The systems that have members of some owners; without `owners`, all systems."""
    states = await fetch_one(connection, "rules.health/read_member_states", {"owners": owners})
    parameters = {"owners": owners, "worst": list(WORST_FIRST), "shown": MAX_SHOWN_MEMBERS}
    stored_systems, rows, counts, worst = await fetch_one(connection, "rules.health/read_systems", parameters)
    systems = Systems(member_states(*states), find_members)
    for name, health, reason, _ in stored_systems:
        systems.add_system(name, (health, reason))
    members = {MemberRow(*row): condition for *row, condition in rows}
    for row, condition in members.items():
        systems.add_member(row, condition)
    for name, condition, required, count in counts:
        systems.add_counts(name, condition, required, count)
    for *row, condition in worst:
        systems.add_worst(MemberRow(*row), condition)
    holds_from = max((parse_instant(system[3]) for system in stored_systems), default=None)
    return StoredHealth(systems, members, holds_from)


def member_states(series: Iterable[Sequence[Any]], alarms: Iterable[Sequence[Any]]) -> MemberStates:
    """The states of rows (owner, key, stale_since) and (owner, rule, instance,
    severity, since, keys)."""
    states = MemberStates()
    for owner, key, stale_since in series:
        stale_at = None if stale_since is None else parse_instant(stale_since)
        states.series.setdefault(owner, {})[key] = stale_at
    for owner, rule, instance, severity, since, keys in alarms:
        alarm = MemberAlarm(severity, parse_instant(since), frozenset(keys))
        states.alarms.setdefault(owner, {})[rule, instance] = alarm
    return states


async def write_health(
    connection: Connection,
    health: StoredHealth,
    observations: Sequence[StoredObservation],
    changes: Sequence[HealthChange],
) -> None:
    """Store the effect of the observations, and delete them."""
    systems, members, _ = health
    series = {(stored.owner, stored.subject) for _, stored in observations if stored.kind != "alarm"}
    alarms = {
        (stored.owner, stored.subject, stored.instance): systems.states.alarms.get(stored.owner, {}).get(
            (stored.subject, stored.instance)
        )
        for _, stored in observations
        if stored.kind == "alarm"
    }
    parameters = {
        "observations": [id for id, _ in observations],
        "series": as_rows(
            {"owner": owner, "key": key, "stale_since": systems.states.series[owner][key]}
            for owner, key in series
        ),
        "ended": as_rows(
            {"owner": owner, "rule": rule, "instance": instance}
            for (owner, rule, instance), alarm in alarms.items()
            if not alarm
        ),
        "alarms": as_rows(alarm_row(*subject, alarm) for subject, alarm in alarms.items() if alarm),
        "seen": as_rows(row._asdict() for row in members if row not in systems.members),
        "members": as_rows(
            member_row(row, condition)
            for row, condition in systems.members.items()
            if members.get(row) != condition
        ),
        "systems": as_rows(
            {"system": change.system, "health": change.health, "reason": change.reason, "since": change.at}
            for change in {change.system: change for change in changes}.values()
        ),
    }
    await connection.execute(statement("rules.health/put_health"), parameters)


def alarm_row(owner: str, rule: str, instance: str, alarm: MemberAlarm) -> dict[str, Any]:
    return {"owner": owner, "rule": rule, "instance": instance, **alarm._asdict(), "keys": sorted(alarm.keys)}


def member_row(row: MemberRow, condition: MemberCondition) -> dict[str, Any]:
    return {**row._asdict(), "condition": condition}


def as_rows(rows: Iterable[Mapping[str, Any]]) -> Jsonb:
    """A parameter for `jsonb_to_recordset`."""
    return Jsonb([{name: _json(value) for name, value in row.items()} for row in rows])


def health_datapoint(change: HealthChange) -> NewCalculated:
    return NewCalculated(change.system, HEALTH_KEY, change.at, "health", change.payload, uuid4())


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
