"""Handles the staleness of series when the rules change.

Guarantee, in the transaction of the apply, which holds all partitions: first `handle_overdue`
handles every staleness up to the watermark with the rules that held until now, so that their
conclusions do not depend on how late the clock or the stream was. For members of systems it
handles every sustain too, because the documents that decide their health are about to change. At
the end `evaluate_stale_series` evaluates the series that are stale already with the rules that are
new or changed, as of the watermark: `absent` over a stale series opens an alarm, with its `for`
counted from the change.

A replay does the same at the same position of the stream (`rules/apply/cutover.py`). Only the clock
works at the same time, and it removes the timer first, as this module does: then `Conflict` is
raised, and the apply starts again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from rules.alarms.batch_writes import AlarmBatch, read_states, state_key
from rules.alarms.over_series import OwnerWatermark, plan_batch
from rules.alarms.rule_change import rules_to_reevaluate
from rules.apply.alarms import Watermarks
from rules.apply.backlog import MAX_OVERDUE, BacklogTooLarge, chunks, count_overdue, read_backlog
from rules.apply.impact import Impact
from rules.engine import CompiledRules, Rule, Value, WentStale
from rules.health.observations import Observation
from rules.lanes.batch import Writes
from tocsin.core.db import Connection, fetch_all
from tocsin.core.records import NewRecords

# A chunk is evaluated while the session is idle inside a transaction, which Postgres ends after a
# while.
_CHUNK = 250


class StaleSeries(NamedTuple):
    """A row of rules.apply/list_stale_series."""

    partition: int
    owner: str
    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]

    def as_input(self, instant: datetime, reevaluated_at: datetime) -> WentStale:
        """The input for a rule that evaluates the series from `instant` on."""
        return WentStale(instant, *self[1:], reevaluated_at)


async def handle_overdue(
    connection: Connection, watermarks: Watermarks, impact: Impact
) -> tuple[NewRecords, list[Observation]]:
    """Handle overdue checks with the rules that held.

    Returns the records to append, and the observations of members.

    `BacklogTooLarge` if that is too much to do while the lanes are blocked: see `backlog`.
    """
    if impact.systems is None:
        return NewRecords(), []
    backlog = await read_backlog(connection)
    if count_overdue(backlog) > MAX_OVERDUE:
        raise BacklogTooLarge
    records: list[NewRecords] = []
    observations: list[Observation] = []
    for partition, owners in sorted(backlog.items()):
        watermark = watermarks["data", partition]
        assert watermark is not None, "nothing was read, so nothing is due"
        for chunk in chunks(owners):
            inputs = [OwnerWatermark(overdue.owner, watermark) for overdue in chunk]
            batch = await plan_batch(connection, partition, inputs, impact.before, impact.members)
            records.append(await _write(connection, batch))
            observations += batch.observations
    return replace(NewRecords.joined(records), observations=None), observations


async def evaluate_stale_series(
    connection: Connection, watermarks: Watermarks, impact: Impact, at: datetime
) -> NewRecords:
    """Evaluate stale series with the rules that hold from now on; returns records to append."""
    names = rules_to_reevaluate(impact.before, impact.after)
    records = []
    async for chunk in _stale_inputs(connection, watermarks, impact.after, names, at):
        for partition, inputs in sorted(chunk.items()):
            records.append(await _write(connection, await _evaluate(connection, partition, inputs)))
    return NewRecords.joined(records)


async def _stale_inputs(
    connection: Connection,
    watermarks: Watermarks,
    rules: CompiledRules,
    names: AbstractSet[str],
    at: datetime,
) -> AsyncIterator[dict[int, list[tuple[Rule, WentStale]]]]:
    """Yield chunks of stale series with the rules that evaluate them, by partition."""
    after = ("", "")
    while names:
        parameters = {"owner": after[0], "key": after[1], "most": _CHUNK}
        rows = await fetch_all(connection, "rules.apply/list_stale_series", parameters)
        stale = [StaleSeries(*row) for row in rows]
        chunk: defaultdict[int, list[tuple[Rule, WentStale]]] = defaultdict(list)
        for series in stale:
            watermark = watermarks["data", series.partition]
            assert watermark is not None, "nothing was read, so nothing is stale"
            evaluating = (rule for rule in rules.for_key(series.key) if rule.name in names)
            chunk[series.partition] += [(rule, series.as_input(watermark, at)) for rule in evaluating]
        yield chunk
        if len(stale) < _CHUNK:
            return
        after = stale[-1].owner, stale[-1].key


async def _evaluate(
    connection: Connection, partition: int, inputs: Sequence[tuple[Rule, WentStale]]
) -> AlarmBatch:
    subjects = (state_key(rule, input) for rule, input in inputs)
    batch = AlarmBatch("data", partition, await read_states(connection, subjects))
    for rule, input in inputs:
        batch.apply_input(rule, input)
    return batch


async def _write(connection: Connection, work: Writes) -> NewRecords:
    await work.write_timers(connection)
    await work.write_entities(connection)
    return work.records_to_append()
