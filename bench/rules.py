"""Matching events to rules, dispatching them through the record lane, and opening alarms.

Matching: CPU per event with 10 rules, with 100 rules that no index can help, and with 1,000 of
which 100 are such, compared with bare evaluation of one condition. Dispatch: events per second
through the batches of the lane into running actions, with 10 and 1,000 rules. Alarms: openings per
second through the batches of the data lane, compared with the same rows written by plain statements
(`bench/sql/open_alarms_raw.sql`), in batches of the same size. `--events N --alarms N`.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.database import bench_servers, migrated
from rules.alarms.over_series import SeriesAlarms
from rules.apply import apply
from rules.dispatch.dispatcher import Dispatcher
from rules.dispatch.matcher import ActionMatcher
from rules.documents.load import load_text
from rules.documents.rule_book import RuleSet, newest_rules
from rules.engine import Arrival, TypeIndex
from rules.lanes.batch import PhasedPlan
from rules.lanes.data_lane import DataBatch
from rules.lanes.datapoint_store import DatapointWrites, PlacedArrival, prepare_staging
from rules.language.cel import compile_event_condition, event_activation, event_environment
from schemas.wire.event import Event
from schemas.wire.event_facts import event_facts
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.embedded import Servers

_T0 = datetime(2026, 1, 1, tzinfo=UTC)
_BATCH = 1_000
_LANE_BATCH = 200
_ACTION = "action: {name: note, log: {message: '{{ owner }}'}}\n"
_UNINDEXABLE = (
    'owner.matches("^plant-{n}$")',
    'type == "a{n}" || owner == "plant-{n}"',
    'type != "noted" && owner == payload.x',
)


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench rules")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--alarms", type=int, default=10_000)
    options = parser.parse_args(arguments)
    report: dict[str, object] = {"name": "rules", **_matching()}
    with bench_servers() as servers:
        report |= asyncio.run(_live(servers, options.events, options.alarms))
    return {
        **report,
        "goal": "1,000 rules cost at most 3 times 100 unindexable ones; alarms at least 0.2 of the raw statements",
    }


def _rules(indexed: int, unindexable: int, when: str = 'type == "noted" && owner == "plant-{n}"') -> str:
    conditions = [when.replace("{n}", str(number)) for number in range(indexed)]
    conditions += [
        _UNINDEXABLE[number % len(_UNINDEXABLE)].replace("{n}", str(number)) for number in range(unindexable)
    ]
    rules = (
        f"---\naction_rule: {{name: rule-{number}, on: event, when: '{condition}', action: note}}\n"
        for number, condition in enumerate(conditions)
    )
    return _ACTION + "".join(rules)


def _matching() -> dict[str, object]:
    facts = [_facts(number) for number in range(2_000)]
    bare = _bare_us(facts)
    few, hard, many = (_match_us(_rules(*counts), facts) for counts in ((10, 0), (0, 100), (900, 100)))
    return {
        "bare_condition_us": bare,
        "match_10_rules_us": few,
        "match_100_unindexable_us": hard,
        "match_1000_rules_us": many,
        "ratio_1000_to_100_unindexable": many / hard,
    }


def _facts(number: int) -> dict[str, Any]:
    event = NewEvent(_T0, "external", "noted", {"x": number}, owner=f"plant-{number % 900}")
    columns = {**vars(event), "seq": number + 1, "recorded_at": event.ts, "correlation_id": event.id}
    return event_facts(columns)


def _bare_us(facts: list[dict[str, Any]]) -> float:
    condition = compile_event_condition('type == "noted" && owner == "plant-7"')
    environment = event_environment()
    began = time.process_time()
    for event in facts:
        condition.matches(event_activation(environment, event))
    return (time.process_time() - began) / len(facts) * 1e6


def _match_us(text: str, facts: list[dict[str, Any]]) -> float:
    matcher = ActionMatcher(RuleSet(document.model for document in load_text(text).documents))
    began = time.process_time()
    for event in facts:
        matcher.match(event)
    return (time.process_time() - began) / len(facts) * 1e6


async def _live(servers: Servers, events: int, alarms: int) -> dict[str, object]:
    report: dict[str, object] = {"events": events, "alarms": alarms}
    async with migrated(servers) as (_, connection):
        await prepare_staging(connection)
        for count, unindexable in ((10, 0), (900, 100)):
            await _apply(connection, _rules(count, unindexable))
            name = f"dispatch_{count + unindexable}_rules_per_s"
            report[name] = await _dispatch(connection, events, min(count, 900))
        ours = await _open_alarms(connection, alarms)
        limit = await _raw(connection, alarms)
    return report | {"ours": ours, "limit": limit, "ratio": ours / limit}


async def _apply(connection: Connection, text: str) -> None:
    await apply(connection, load_text(text, anchor=_T0), Actor("bench", "bench", _T0))


async def _dispatch(connection: Connection, count: int, owners: int) -> float:
    """Events per second; every event starts a run."""
    dispatcher = Dispatcher()
    taken = 0.0
    for first in range(0, count, _LANE_BATCH):
        events = [
            NewEvent(_T0, "external", "noted", {"x": 1}, owner=f"plant-{(first + number) % owners}")
            for number in range(_LANE_BATCH)
        ]
        last = await append_events(connection, events)
        recorded = [_event(event, last - len(events) + number) for number, event in enumerate(events, 1)]
        began = time.perf_counter()
        plan = PhasedPlan([await dispatcher.plan(connection, recorded)])
        async with connection.transaction():
            await plan.write(connection)
        taken += time.perf_counter() - began
    return count / taken


def _event(event: NewEvent, seq: int) -> Event:
    return Event(
        specversion="1.0",
        id=event.id,
        source="bench",
        type=event.type,
        time=event.ts,
        datacontenttype="application/json",
        seq=seq,
        fireat=None,
        origin="external",
        recordedat=event.ts,
        correlationid=event.id,
        owner=event.owner,
        data=dict(event.payload),
    )


async def _open_alarms(connection: Connection, count: int) -> float:
    """Alarms per second: each datapoint has another owner and opens an alarm at once."""
    await _apply(connection, "event_rule: {name: hot, datapoint: dsp.load, above: 65}\n")
    await connection.execute(statement("bench/insert_partition"))
    await connection.execute(statement("bench/extend_day"), {"day": _T0.date()})
    work = SeriesAlarms()
    rules_seq = await newest_rules(connection)
    began = time.perf_counter()
    for first in range(0, count, _BATCH):
        arrivals = list(_arrivals(first, min(_BATCH, count - first)))
        planned = await work.plan(connection, DataBatch(0, arrivals, rules_seq, TypeIndex()))
        stored = DatapointWrites(
            0, [PlacedArrival(number, arrival) for number, arrival in enumerate(arrivals)]
        )
        plan = PhasedPlan([stored, planned])
        async with connection.transaction():
            await plan.stage(connection)
            await plan.write(connection)
    return count / (time.perf_counter() - began)


def _arrivals(first: int, count: int) -> Iterable[Arrival]:
    for number in range(first, first + count):
        at = _T0 + timedelta(milliseconds=number)
        yield Arrival(at, number, f"owner-{number}", "dsp.load", 70.0, at, {})


async def _raw(connection: Connection, count: int) -> float:
    began = time.perf_counter()
    for first in range(0, count, _BATCH):
        await connection.execute(
            statement("bench/open_alarms_raw"), {"first": first, "count": min(_BATCH, count - first)}
        )
    return count / (time.perf_counter() - began)
