"""Measures how long an apply blocks the lanes: `--overdue N --rules N --series N`.

A probe locks a partition of the data lane repeatedly, as a batch does; its longest wait is how long
the lane was blocked. Measured are: an apply with overdue staleness checks, as after an outage of
the clock; a new rule that evaluates as many stale series; a change of all rules over series with an
open alarm each; and their removal, which resolves all of those.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bench.database import bench_servers, migrated
from bench.probe import repeated
from rules.alarms.over_series import SeriesAlarms
from rules.apply import apply, preview
from rules.documents.load import load_text
from rules.documents.rule_book import newest_rules
from rules.engine import Arrival, TypeIndex
from rules.lanes.batch import PhasedPlan
from rules.lanes.data_lane import DataBatch
from rules.lanes.datapoint_store import DatapointWrites, PlacedArrival, prepare_staging
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

_T0 = datetime(2026, 1, 1, tzinfo=UTC)
_BATCH = 1000
_TYPE = "---\ndatapoint_type: {name: load, key: dsp.load, interval: 4s}\n"
_QUIET = "---\nevent_rule: {name: quiet, datapoint: dsp.load, absent: true, severity: high}\n"
_OTHER = "---\nevent_rule: {name: other, datapoint: dsp.other, above: 1}\n"
_ALSO = "---\nevent_rule: {name: also, datapoint: dsp.load, absent: true}\n"


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench apply")
    parser.add_argument("--overdue", type=int, default=20_000)
    parser.add_argument("--rules", type=int, default=1000)
    parser.add_argument("--series", type=int, default=20_000)
    options = parser.parse_args(arguments)
    report: dict[str, object] = {"name": "apply", **vars(options)}
    with bench_servers() as servers:
        report |= asyncio.run(_measure(servers, options.overdue, options.rules, options.series))
    return {**report, "goal": "overdue checks block a lane for less than a second at a time"}


async def _measure(servers: Servers, overdue: int, rules: int, series: int) -> dict[str, object]:
    report: dict[str, object] = {}
    async with migrated(servers) as (settings, connection):
        await connection.execute(statement("bench/insert_partition"))
        await _apply(connection, _TYPE + _QUIET)
        parameters = {"owner": "stale", "count": overdue, "at": _T0}
        await connection.execute(statement("bench/fill_watchdogs"), parameters)
        await connection.execute(statement("bench/set_watermark"), {"at": _T0 + timedelta(hours=1)})
        report |= await _timed(settings, connection, "overdue", _TYPE + _QUIET + _OTHER)
        report |= await _timed(settings, connection, "new_rule", _TYPE + _QUIET + _OTHER + _ALSO)
        await _open_alarms(connection, rules, series)
        report |= await _timed(settings, connection, "change", _hot(rules, 60))
        report |= await _timed(settings, connection, "removal", _TYPE)
    return report


async def _timed(settings: Settings, connection: Connection, name: str, text: str) -> dict[str, object]:
    with repeated(settings, statement("bench/lock_partition"), 0.002) as waits:
        began = time.perf_counter()
        await _apply(connection, text)
        took = time.perf_counter() - began
    return {
        f"{name}_s": took,
        f"{name}_longest_block_s": max(waits),
        f"{name}_blocks_over_100ms": _long(waits),
    }


def _long(waits: list[float]) -> int:
    return sum(wait > 0.1 for wait in waits)


async def _apply(connection: Connection, text: str) -> None:
    loaded = load_text(text, anchor=_T0)
    actor = Actor("bench", "bench", _T0 + timedelta(hours=2))
    removed = (await preview(connection, loaded, actor.now, prune=True)).plan.removed
    await apply(connection, loaded, actor, removing=removed, large=True)


def _hot(rules: int, above: int) -> str:
    return "".join(
        f"---\nevent_rule: {{name: hot-{number}, datapoint: dsp.k{number}, above: {above}}}\n"
        for number in range(rules)
    )


async def _open_alarms(connection: Connection, rules: int, series: int) -> None:
    """One alarm per series; each rule covers every `rules`-th series."""
    await _apply(connection, _hot(rules, 65))
    await prepare_staging(connection)
    await connection.execute(statement("bench/extend_day"), {"day": _T0.date()})
    work = SeriesAlarms()
    rules_seq = await newest_rules(connection)
    for first in range(0, series, _BATCH):
        arrivals = list(_arrivals(first, min(_BATCH, series - first), rules))
        planned = await work.plan(connection, DataBatch(0, arrivals, rules_seq, TypeIndex()))
        plan = PhasedPlan(
            [
                DatapointWrites(
                    0, [PlacedArrival(number, arrival) for number, arrival in enumerate(arrivals)]
                ),
                planned,
            ]
        )
        async with connection.transaction():
            await plan.stage(connection)
            await plan.write(connection)


def _arrivals(first: int, count: int, rules: int) -> Iterable[Arrival]:
    for number in range(first, first + count):
        at = _T0 + timedelta(hours=1, milliseconds=number)
        yield Arrival(at, number + 1, f"owner-{number}", f"dsp.k{number % rules}", 70.0, at, {})
