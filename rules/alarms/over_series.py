"""Evaluates event_rules and staleness over series, for batches of the data lane.

Guarantee: the inputs of one owner are evaluated in the order of their instants. A deadline that is
due before an arrival is handled first, at its nominal time, either by the clock or by the batch
that reads the arrival. If the clock has recorded that a series is stale, the rules evaluate it
here, before anything later of the same owner. If it has not, this batch records it and deletes the
watchdog; a watchdog that is already gone means that the clock was faster, and the batch is planned
again. So the results depend on arrivals alone.

A calculated datapoint from the stream only triggers a batch. The stored series decide.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import NamedTuple

from rules.alarms.batch_writes import AlarmBatch, StateKey, read_states, state_key
from rules.alarms.check_ins import check_in_events
from rules.alarms.fresh_cache import FreshCache, FreshSeries
from rules.alarms.heartbeat_gaps import HeartbeatGaps
from rules.alarms.staleness import (
    NO_GAPS,
    SeriesKey,
    StalenessTracker,
    StoredSeries,
    TrackedSeries,
    fresh_datapoint,
    stale_datapoint,
)
from rules.documents.compiled_rules import compiled_rule_book
from rules.documents.members import Members
from rules.engine import Arrival, CompiledRules, WentStale
from rules.health.observations import Observation, freshness_observation
from rules.lanes.arrival_gap import ArrivalGap, read_gaps
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch, StalenessChange
from rules.lanes.lineage import NO_LINEAGES
from schemas.wire.subjects import token
from tocsin.core.db import Connection, fetch_all, fetch_one, fetch_value, statement
from tocsin.core.errors import Conflict
from tocsin.core.instant import MICROSECOND
from tocsin.core.records import NewCalculated, NewEvent, NewRecords

_NO_MEMBERS = Members()
# Inputs that are evaluated before other tasks may run.
_INPUTS_PER_SLICE = 100


class SeriesAlarms:
    def __init__(self) -> None:
        self._book = compiled_rule_book()
        self._cache = FreshCache()

    async def plan(self, connection: Connection, batch: DataBatch) -> SeriesBatch:
        await self._book.refresh(connection, batch.rules_seq + 1)
        rules = self._book.at(batch.rules_seq + 1)
        newest = self._cache.newest[batch.partition]
        parameters = {"partition": batch.partition}
        newest.continue_from(await fetch_value(connection, "rules.alarms/read_lane_position", parameters))
        newest.last_seq = batch.last_seq
        fresh = self._cache.for_rules(batch.rules_seq, rules.types, batch.partition)
        inputs = [*batch.inputs, *await _owners_to_recheck(connection, batch, rules)]
        planned = await plan_batch(
            connection,
            batch.partition,
            inputs,
            rules,
            rules.members,
            fresh,
            batch.gaps,
            batch.lineages,
        )
        planned.check_ins = list(check_in_events(batch.inputs))
        return planned


class OwnerWatermark(NamedTuple):
    """The instant up to which deadlines of an owner can be decided.

    These are the deadlines of series and, for owners of members, the ends of sustains.
    """

    owner: str
    until: datetime
    rechecked: tuple[StateKey, ...] = ()
    """States that may change before that instant although nothing arrives."""


SeriesInput = Arrival | StalenessChange | OwnerWatermark


async def plan_batch(
    connection: Connection,
    partition: int,
    inputs: Sequence[SeriesInput],
    rules: CompiledRules,
    members: Members = _NO_MEMBERS,
    fresh: FreshSeries | None = None,
    new_gaps: Sequence[ArrivalGap] = NO_GAPS,
    lineages: Mapping[int, tuple[str, ...]] = NO_LINEAGES,
) -> SeriesBatch:
    """Read and decide, without a lock. The rows of `fresh` series are not read.

    `new_gaps` are arrival gaps that are not recorded yet. `lineages` are those of messages that runs
    sent, by their sequences.
    """
    watermarks = {_watermark(input) for input in inputs}
    until = max((watermark.until for watermark in watermarks), default=None)
    arrived = {(input.owner, input.key) for input in inputs if isinstance(input, Arrival)}
    skipped = fresh.fresh_until(arrived, until) if fresh is not None and until is not None else set()
    stored = await _read_series(connection, watermarks, arrived - skipped)
    if fresh is not None:
        fresh.remember(stored)
    first_arrivals = _first_arrivals(inputs, {(series.owner, series.key) for series in stored} | skipped)
    gaps = [*await _read_gaps(connection, partition, stored), *new_gaps]
    tracker = StalenessTracker(stored, rules.types, gaps)
    newest = {(series.owner, series.key): series.ts for series in stored} if fresh is None else fresh.newest
    timeline, calculated = _timeline(_with_lateness(inputs, newest), tracker, skipped)
    sustained = await _read_sustained(connection, inputs, members)
    rechecked = {
        key: input.until for input in inputs if isinstance(input, OwnerWatermark) for key in input.rechecked
    }
    gaps_of_heartbeats = await HeartbeatGaps.read(connection, partition, rules, new_gaps)
    subjects = (*_subjects(rules, timeline), *sustained, *rechecked, *gaps_of_heartbeats.keys)
    states = await read_states(connection, subjects)
    alarms = AlarmBatch("data", partition, states, members.owners)
    await _evaluate(alarms, rules, timeline, lineages, gaps_of_heartbeats)
    if until is not None:
        rechecked |= dict.fromkeys(alarms.keys_to_recheck(until), until)
    for key, watermark in {**sustained, **rechecked}.items():
        if key[0] in rules.rules:
            alarms.apply_time(rules.rules[key[0]], key, watermark)
    freshness = _freshness_observations(first_arrivals, calculated)
    observed = [
        observation
        for observation in freshness
        if members.of_series(observation.owner, observation.subject, rules)
    ]
    observations = [*observed, *alarms.observations]
    return SeriesBatch(alarms.freeze(), tracker.changed_series(), calculated, observations)


class SeriesBatch(Writes):
    def __init__(
        self,
        alarms: AlarmBatch,
        changed: Sequence[TrackedSeries],
        calculated: Sequence[NewCalculated],
        observations: Sequence[Observation],
    ) -> None:
        self.observations = observations
        self.check_ins: Sequence[NewEvent] = ()
        """The events of the check-ins of the batch."""
        self._alarms = alarms
        self._changed = changed
        self._calculated = calculated

    async def write_timers(self, connection: Connection) -> None:
        await self._alarms.write_timers(connection)
        watched = [
            series
            for series in self._changed
            if series.stored is not None and series.stored.stale_after is not None
        ]
        disarmed = [series for series in watched if series.is_watchdog_expired or not series.needs_watchdog]
        if disarmed:
            await _disarm(connection, disarmed)
        armed = [series for series in self._changed if series.needs_watchdog]
        if armed:
            await _arm(connection, armed)

    async def write_entities(self, connection: Connection) -> None:
        changed = [
            series for series in self._changed if series.stored is not None or series.stale_since is not None
        ]
        if changed:
            await connection.execute(
                statement("rules.alarms/put_freshness"),
                {
                    "owners": [series.owner for series in changed],
                    "keys": [series.key for series in changed],
                    "stale_since": [series.stale_since for series in changed],
                    "handled_stale_since": [series.handled_stale_since for series in changed],
                },
            )
        await self._alarms.write_entities(connection)

    def records_to_append(self) -> NewRecords:
        rows = [observation.to_json() for observation in self.observations]
        events = [*self.check_ins, *self._alarms.events]
        return NewRecords(events, calculated=self._calculated, observations=rows)


async def _disarm(connection: Connection, disarmed: Sequence[TrackedSeries]) -> None:
    row = await fetch_one(
        connection,
        "rules.alarms/disarm_watchdogs",
        {
            "refs": [token(series.owner) for series in disarmed],
            "keys": [series.key for series in disarmed],
            "expired": [series.is_watchdog_expired for series in disarmed],
        },
    )
    if row is None or row[0] != sum(series.is_watchdog_expired for series in disarmed):
        raise Conflict("a watchdog fired while its series was being evaluated")


async def _arm(connection: Connection, armed: Sequence[TrackedSeries]) -> None:
    await connection.execute(
        statement("rules.alarms/arm_watchdogs"),
        {
            "owners": [series.owner for series in armed],
            "refs": [token(series.owner) for series in armed],
            "keys": [series.key for series in armed],
            "deadlines": [series.deadline for series in armed],
            "within_us": [(series.stale_after or timedelta(0)) // MICROSECOND for series in armed],
        },
    )


async def _evaluate(
    alarms: AlarmBatch,
    rules: CompiledRules,
    timeline: Sequence[Arrival | WentStale],
    lineages: Mapping[int, tuple[str, ...]],
    gaps: HeartbeatGaps,
) -> None:
    for number, input in enumerate(timeline):
        gaps.end_before(alarms, input.at)
        lineage = lineages.get(input.seq, ()) if lineages and isinstance(input, Arrival) else ()
        for rule in rules.for_key(input.key):
            alarms.apply_input(rule, input, lineage=lineage)
        if number % _INPUTS_PER_SLICE == 0:
            await asyncio.sleep(0)  # Lets transactions of other partitions continue.
    gaps.end_before(alarms, None)


def _timeline(
    inputs: Iterable[SeriesInput], tracker: StalenessTracker, skipped: AbstractSet[SeriesKey]
) -> tuple[list[Arrival | WentStale], list[NewCalculated]]:
    """The inputs of the rules in order, and the calculated datapoints to append.

    `skipped` series have none.
    """
    timeline: list[Arrival | WentStale] = []
    calculated: list[NewCalculated] = []
    last: OwnerWatermark | None = None
    for input in inputs:
        watermark = _watermark(input)
        # Once is enough for all datapoints of a message: the deadlines of later arrivals are later.
        for passed in tracker.pass_deadlines(*watermark[:2]) if watermark != last else ():
            timeline.append(passed.input)
            if passed.is_new:
                calculated.append(stale_datapoint(passed.input))
        last = watermark
        if isinstance(input, Arrival):
            if (input.owner, input.key) not in skipped and tracker.arrive(input):
                calculated.append(fresh_datapoint(input))
            timeline.append(input)
    return timeline, calculated


def _with_lateness(inputs: Sequence[SeriesInput], newest: dict[SeriesKey, datetime]) -> Iterator[SeriesInput]:
    """The inputs, with the mark of those whose `ts` is older than the newest of their series.

    `newest` follows.
    """
    for input in inputs:
        if isinstance(input, Arrival):
            series = (input.owner, input.key)
            known = newest.get(series)
            if known is not None and input.ts < known:
                yield input._replace(is_late=True)
                continue
            newest[series] = input.ts
        yield input


async def _owners_to_recheck(
    connection: Connection, batch: DataBatch, rules: CompiledRules
) -> list[OwnerWatermark]:
    """The owners whose states may change by the passing of time before the watermark of the batch."""
    if not rules.has_rechecks or batch.watermark is None:
        return []
    parameters = {"partition": batch.partition, "until": batch.watermark}
    rows = await fetch_all(connection, "rules.alarms/list_due_rechecks", parameters)
    due: defaultdict[str, list[StateKey]] = defaultdict(list)
    for input in batch.inputs:
        if isinstance(input, Arrival):
            due[input.owner] += ()
    for rule, owner, instance in rows:
        due[owner].append((rule, owner, instance))
    return [OwnerWatermark(owner, batch.watermark, tuple(keys)) for owner, keys in sorted(due.items())]


def _first_arrivals(inputs: Sequence[SeriesInput], seen: set[SeriesKey]) -> list[Arrival]:
    """The first arrival of each series that is not in `seen`."""
    arrivals = []
    for input in inputs:
        if isinstance(input, Arrival) and (input.owner, input.key) not in seen:
            seen.add((input.owner, input.key))
            arrivals.append(input)
    return arrivals


def _freshness_observations(
    first_arrivals: Iterable[Arrival], calculated: Iterable[NewCalculated]
) -> Iterable[Observation]:
    for arrival in first_arrivals:
        yield Observation(arrival.owner, arrival.at, "fresh", arrival.key)
    yield from map(freshness_observation, calculated)


def _watermark(input: SeriesInput) -> OwnerWatermark:
    if isinstance(input, Arrival):
        return OwnerWatermark(input.owner, input.at)
    if isinstance(input, StalenessChange):
        return OwnerWatermark(input.calculated.owner, input.calculated.time)
    return OwnerWatermark(input.owner, input.until)


def _subjects(rules: CompiledRules, timeline: Iterable[Arrival | WentStale]) -> Iterable[StateKey]:
    return (state_key(rule, input) for input in timeline for rule in rules.for_key(input.key))


async def _read_sustained(
    connection: Connection, inputs: Sequence[SeriesInput], members: Members
) -> dict[StateKey, datetime]:
    """The subjects whose sustains the watermarks decide, for owners of members only.

    For other owners it makes no difference which process handles a sustain, and when.
    """
    until = {
        input.owner: input.until
        for input in inputs
        if isinstance(input, OwnerWatermark) and input.owner in members.owners
    }
    if not until:
        return {}
    rows = await fetch_all(connection, "rules.alarms/list_sustained_subjects", {"owners": sorted(until)})
    return {(rule, owner, instance): until[owner] for rule, owner, instance in rows}


async def _read_gaps(
    connection: Connection, partition: int, stored: Sequence[StoredSeries]
) -> Sequence[ArrivalGap]:
    """The recorded gaps that can extend a deadline of these series."""
    since = min((series.arrived_at for series in stored if series.stale_since is None), default=None)
    return NO_GAPS if since is None else await read_gaps(connection, partition, since)


async def _read_series(
    connection: Connection, watermarks: AbstractSet[OwnerWatermark], arrived: AbstractSet[SeriesKey]
) -> list[StoredSeries]:
    if not watermarks:
        return []
    series = sorted(arrived)
    owners = sorted({watermark.owner for watermark in watermarks})
    numbers = {owner: number for number, owner in enumerate(owners, start=1)}
    rows = await fetch_all(
        connection,
        "rules.alarms/read_series",
        {
            "owners": owners,
            "refs": [token(owner) for owner in owners],
            "owner_numbers": [numbers[owner] for owner, _ in series],
            "keys": [key for _, key in series],
            "until": max(watermark.until for watermark in watermarks),
        },
    )
    return [StoredSeries(*row) for row in rows]
