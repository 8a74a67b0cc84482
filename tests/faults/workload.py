"""Schedules that fire during the faults, and the account of every nominal time afterwards.

Guarantee: `account` reads only the record log. Each nominal time must be in exactly one record: a fire,
or the range of a `schedule-missed`. The seq has no gap that was not accepted, and no id occurs twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

from tests.sessions import open_sessions
from timers.schedule_spec import ScheduleSpec
from timers.schedules import pause_schedule, put_schedule
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.settings import Settings

OWNER = "faults"
_CHUNK = 500
PULSES = (
    ScheduleSpec("pulse", {"every": "100ms"}, owner=OWNER),
    ScheduleSpec("pulse-all", {"every": "250ms"}, owner=OWNER, catch_up="all", max_catch_up=10_000),
    ScheduleSpec("pulse-none", {"every": "500ms"}, owner=OWNER, catch_up="none"),
)
_STEPS = {"pulse": 100, "pulse-all": 250, "pulse-none": 500}
_EVENTS = """
    select schedule, type, ts, payload from tocsin.event where owner = %s and schedule <> '' order by seq
"""
_RECORDS = """
    with record as (
        select seq, id from tocsin.event union all select seq, id from tocsin.action_step
        union all select seq, id from tocsin.datapoint_calculated
    )
    select coalesce(max(seq), 0) - count(distinct seq)
           - (select coalesce(sum(until_seq - from_seq + 1), 0)::bigint from tocsin.log_gap),
           count(*) - count(distinct id)
    from record
"""


@dataclass(frozen=True)
class Account:
    fired: int
    missed: int
    missed_records: int
    lost: list[str]
    doubled: list[str]
    gaps: int
    repeated_ids: int

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.gaps or self.repeated_ids)


async def arm_pulses(settings: Settings) -> dict[str, datetime]:
    """Put the pulses; return the first nominal time of each."""
    firsts = {}
    async with open_sessions(settings) as open_session:
        connection = await open_session("workload")
        actor = Actor("tester", "test", await database_now(connection))
        for spec in PULSES:
            put = await put_schedule(connection, spec, actor)
            assert put.next_at is not None
            firsts[spec.name] = put.next_at
    return firsts


def arm_one_shots(url: str, count: int, ahead_s: float, over_s: float) -> None:
    """Arm one-shots, the first in `ahead_s`, evenly over `over_s`; in chunks, because each takes a lock."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("select tocsin.instant()").fetchone()
        assert row is not None
        base = row[0] + timedelta(seconds=ahead_s)
        for first in range(0, count, _CHUNK):
            connection.execute(
                "select count(*) from generate_series(%s::int, %s::int) as n"
                " cross join lateral tocsin.schedule_once(%s, 'once-' || n, %s + n * %s)",
                (first, min(first + _CHUNK, count) - 1, OWNER, base, timedelta(seconds=over_s) / count),
            )


async def pause_pulses(settings: Settings) -> None:
    async with open_sessions(settings) as open_session:
        connection = await open_session("workload")
        actor = Actor("tester", "test", await database_now(connection))
        for spec in PULSES:
            await pause_schedule(connection, OWNER, spec.name, actor)


def account(url: str, firsts: dict[str, datetime]) -> Account:
    with psycopg.connect(url, autocommit=True) as connection:
        events = connection.execute(_EVENTS, (OWNER,)).fetchall()
        counts = connection.execute(_RECORDS).fetchone()
        schedules = connection.execute(
            "select name, recurrence ->> 'at', last_occurrence from tocsin.schedule where owner = %s",
            (OWNER,),
        ).fetchall()
    assert counts is not None
    ends = _ends(events)
    lost: list[str] = []
    doubled: list[str] = []
    for name, at, done_until in schedules:
        expected = [datetime.fromisoformat(at)] if at else _due_times(name, firsts[name], done_until)
        for nominal in expected:
            times = ends[name].pop(nominal, 0)
            if times != 1:
                (doubled if times else lost).append(f"{name} {nominal.isoformat()}")
    unexpected = [f"{name} {time.isoformat()}" for name, left in ends.items() for time in left]
    missed = [event for event in events if event[1] == "schedule-missed"]
    return Account(
        fired=sum(event[1] == "schedule-fired" for event in events),
        missed=sum(event[3]["count"] for event in missed),
        missed_records=len(missed),
        lost=lost,
        doubled=doubled + unexpected,
        gaps=counts[0],
        repeated_ids=counts[1],
    )


def _due_times(name: str, first: datetime, done_until: datetime | None) -> list[datetime]:
    """The nominal times of a pulse up to its last occurrence: all of them must have ended."""
    return [] if done_until is None else _nominal_times(name, first, done_until)


def _ends(events: list[tuple[Any, ...]]) -> dict[str, Counter[datetime]]:
    """How often each nominal time of each schedule ended, by a fire or in a missed record."""
    ends: dict[str, Counter[datetime]] = defaultdict(Counter)
    for name, kind, ts, payload in events:
        if kind == "schedule-fired":
            ends[name][ts] += 1
            continue
        assert kind == "schedule-missed", kind
        first, last = (datetime.fromisoformat(payload[key]) for key in ("first", "last"))
        covered = _nominal_times(name, first, last)
        assert len(covered) == payload["count"], (name, payload)
        ends[name].update(covered)
    return ends


def _nominal_times(name: str, first: datetime, last: datetime) -> list[datetime]:
    if name not in _STEPS:
        return [first]
    step = timedelta(milliseconds=_STEPS[name])
    return [first + n * step for n in range((last - first) // step + 1)]
