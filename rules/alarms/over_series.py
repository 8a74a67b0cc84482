"""Alarms and staleness over series: what the batches of the data lane mean.

Guarantee: inputs of one owner are judged in the order of their instants: what is due before an arrival is realised
first, at its nominal time, by whoever gets there first. The clock may have called a series stale; then the rules hear
of it here, before anything later of the same owner. Where it has not, this batch does, and removes the watchdog: one
that is gone means that the clock was quicker, and the batch is judged again. So verdicts depend on arrivals alone.

A verdict that comes through the stream is only a wake-up: what counts is what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from rules.alarms.batch_writes import Judgement, Subject, read_states
from rules.alarms.fresh_cache import Calm, CalmSeries
from rules.alarms.staleness import Key, Series, Silence, Silences, StoredSeries, is_watched
from rules.documents.compiled_rules import compiled_rule_book
from rules.documents.members import Members
from rules.engine import Arrival, CompiledRules, WentStale
from rules.health.observations import Fact, series_fact
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch, Verdict
from schemas.wire.subjects import token
from timers.staleness_id import verdict_id
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.core.errors import Conflict
from tocsin.core.instant import MICROSECOND
from tocsin.core.records import NewCalculated, Records

_NO_MEMBERS = Members()
# Inputs that are judged without giving way.
_STRETCH = 100


class SeriesAlarms:
    def __init__(self) -> None:
        self._book = compiled_rule_book()
        self._calm = CalmSeries()

    async def plan(self, connection: Connection, batch: DataBatch) -> SeriesJudgement:
        await self._book.refresh(connection, batch.rules_seq + 1)
        rules = self._book.at(batch.rules_seq + 1)
        calm = self._calm.under(batch.rules_seq, rules.types)
        return await judge(connection, batch.partition, batch.inputs, rules, rules.members, calm)


class Due(NamedTuple):
    """No input, but an instant up to which the silences of an owner, and the sustains of members, are decided."""

    owner: str
    until: datetime


Given = Arrival | Verdict | Due


async def judge(
    connection: Connection,
    partition: int,
    inputs: Sequence[Given],
    rules: CompiledRules,
    members: Members = _NO_MEMBERS,
    calm: Calm | None = None,
) -> SeriesJudgement:
    """Read and decide, without a lock. Series that are `calm` are not read, only heard."""
    dues = {_due(given) for given in inputs}
    until = max((due.until for due in dues), default=None)
    arrived = {(given.owner, given.key) for given in inputs if isinstance(given, Arrival)}
    passed = calm.up_to(arrived, until) if calm is not None and until is not None else set()
    stored = await _read_series(connection, dues, arrived - passed)
    if calm is not None:
        calm.learn(stored)
    begun = _first_arrivals(inputs, {(one.owner, one.key) for one in stored} | passed)
    silences = Silences(stored, rules.types)
    timeline, calculated = _timeline(inputs, silences, passed)
    settled = await _due_subjects(connection, inputs, members)
    seen = await read_states(connection, (*_subjects(rules, timeline), *settled))
    judgement = Judgement("data", partition, seen, members.owners)
    for number, given in enumerate(timeline):
        for rule in rules.for_key(given.key):
            judgement.hear(rule, given.owner, given)
        if number % _STRETCH == 0:
            await asyncio.sleep(0)  # transactions of other partitions go on
    for subject, due in settled.items():
        judgement.advance(subject, due)
    told = [Fact(one.owner, one.at, "fresh", one.key) for one in begun] + list(map(series_fact, calculated))
    facts = [fact for fact in told if members.of_series(fact.owner, fact.subject, rules)]
    facts += judgement.facts
    records = Records(judgement.events, calculated=calculated, facts=[fact.told() for fact in facts])
    return SeriesJudgement(judgement.prepare(), silences.changed(), records, facts)


class SeriesJudgement(Writes):
    def __init__(
        self,
        judgement: Judgement,
        changed: Sequence[Series],
        records: Records,
        facts: Sequence[Fact] = (),
    ) -> None:
        self.facts = facts
        self._judgement = judgement
        self._changed = changed
        self._records = records

    async def timers(self, connection: Connection) -> None:
        await self._judgement.timers(connection)
        gone = [one for one in self._changed if one.stored is not None and one.stored.within is not None]
        gone = [one for one in gone if one.lapsed or not is_watched(one)]
        if gone:
            await self._disarm(connection, gone)
        armed = [one for one in self._changed if is_watched(one)]
        if armed:
            await connection.execute(
                statement("rules.alarms/arm_watchdogs"),
                {
                    "owners": [one.owner for one in armed],
                    "refs": [token(one.owner) for one in armed],
                    "keys": [one.key for one in armed],
                    "deadlines": [one.deadline for one in armed],
                    "within_us": [(one.within or timedelta(0)) // MICROSECOND for one in armed],
                },
            )

    async def _disarm(self, connection: Connection, gone: Sequence[Series]) -> None:
        row = await fetch_one(
            connection,
            "rules.alarms/disarm_watchdogs",
            {
                "refs": [token(one.owner) for one in gone],
                "keys": [one.key for one in gone],
                "lapsed": [one.lapsed for one in gone],
            },
        )
        if row is None or row[0] != sum(one.lapsed for one in gone):
            raise Conflict("a watchdog fired while its series was being judged")

    async def entities(self, connection: Connection) -> None:
        known = [one for one in self._changed if one.stored is not None or one.stale_since is not None]
        if known:
            await connection.execute(
                statement("rules.alarms/put_freshness"),
                {
                    "owners": [one.owner for one in known],
                    "keys": [one.key for one in known],
                    "stale_since": [one.stale_since for one in known],
                    "heard": [one.handled_stale_since for one in known],
                },
            )
        await self._judgement.entities(connection)

    def records(self) -> Records:
        return self._records


def _timeline(
    inputs: Sequence[Given], silences: Silences, passed: AbstractSet[Key]
) -> tuple[list[Arrival | WentStale], list[NewCalculated]]:
    """What the rules hear, in order, and the verdicts to record; there are none about series that are `passed`."""
    heard: list[Arrival | WentStale] = []
    calculated: list[NewCalculated] = []
    looked: Due | None = None
    for given in inputs:
        due = _due(given)
        # Once is enough for all datapoints of a message: what arrives now is due later.
        for silence in silences.until(*due) if due != looked else ():
            heard.append(silence.given)
            if silence.is_new:
                calculated.append(_stale(silence))
        looked = due
        if isinstance(given, Arrival):
            if (given.owner, given.key) not in passed and silences.arrive(given):
                calculated.append(_fresh(given))
            heard.append(given)
    return heard, calculated


def _first_arrivals(inputs: Sequence[Given], seen: set[Key]) -> list[Arrival]:
    """Of series that were never seen before."""
    found = []
    for given in inputs:
        if isinstance(given, Arrival) and (given.owner, given.key) not in seen:
            seen.add((given.owner, given.key))
            found.append(given)
    return found


def _due(given: Given) -> Due:
    """Whose silences an input brings to light, and up to when."""
    if isinstance(given, Arrival):
        return Due(given.owner, given.at)
    if isinstance(given, Verdict):
        return Due(given.calculated.owner, given.calculated.time)
    return given


def _subjects(rules: CompiledRules, timeline: Iterable[Arrival | WentStale]) -> Iterable[Subject]:
    return ((rule.name, given.owner) for given in timeline for rule in rules.for_key(given.key))


async def _due_subjects(
    connection: Connection, inputs: Sequence[Given], members: Members
) -> dict[Subject, datetime]:
    """Whose sustains an instant without an input may bring to light: those of members alone. Elsewhere it makes no
    difference who realises them, and when."""
    until = {one.owner: one.until for one in inputs if isinstance(one, Due) and one.owner in members.owners}
    if not until:
        return {}
    cursor = await connection.execute(
        statement("rules.alarms/list_sustained_subjects"), {"owners": sorted(until)}
    )
    return {(rule, owner): until[owner] for rule, owner in await cursor.fetchall()}


def _stale(silence: Silence) -> NewCalculated:
    """To the letter as clock/append_staleness writes it: nobody can tell who came first."""
    given = silence.given
    return NewCalculated(
        owner=given.owner,
        key=given.key,
        ts=given.at,
        kind="stale",
        payload={
            "value": given.value,
            "ts": _instant(given.ts),
            "labels": dict(given.labels),
            "arrived_at": _instant(given.last_arrival),
            "age_s": (given.at - given.last_arrival).total_seconds(),
        },
        id=verdict_id("stale", given.owner, given.key, given.at),
    )


def _fresh(given: Arrival) -> NewCalculated:
    return NewCalculated(
        owner=given.owner,
        key=given.key,
        ts=given.at,
        kind="fresh",
        payload={"value": given.value, "ts": _instant(given.ts), "labels": dict(given.labels)},
        id=verdict_id("fresh", given.owner, given.key, given.at),
    )


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def _read_series(
    connection: Connection, dues: AbstractSet[Due], arrived: AbstractSet[Key]
) -> list[StoredSeries]:
    if not dues:
        return []
    series = sorted(arrived)
    owners = sorted({due.owner for due in dues})
    places = {owner: place for place, owner in enumerate(owners, start=1)}
    cursor = await connection.execute(
        statement("rules.alarms/read_series"),
        {
            "owners": owners,
            "refs": [token(owner) for owner in owners],
            "places": [places[owner] for owner, _ in series],
            "keys": [key for _, key in series],
            "until": max(due.until for due in dues),
        },
    )
    return [StoredSeries(*row) for row in await cursor.fetchall()]
