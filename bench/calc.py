"""Windows of calc_rules over many series, compared with the same aggregation as bare SQL in the same run.

The series send a value each second. Each rule averages the series of its own key over its range and
takes the largest per owner. The limit is one statement per window that groups the same datapoints by
rule and owner and inserts the numbers into a temporary table: it keeps no order of `ts`, no labels, no
records, and knows one function.

`behind_s` is the time from the watermark to the commit of the results of a window: a window of `every`
seconds must take less than that.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from datetime import datetime, timedelta

from bench.database import bench_servers, migrated
from rules.apply import apply
from rules.calc.evaluator import CalcEvaluator
from rules.documents.load import load_text
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, statement
from tocsin.embedded import Servers

RULE = """---
calc_rule:
  name: rule-{number}
  inputs: {{a: {{key: dsp.k{number}, each: avg, aggregate: max, over: {over}s}}}}
  every: {every}s
  value: 'a * 2.0'
"""


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench calc")
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--rules", type=int, default=100)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--over", type=int, default=10)
    parser.add_argument("--windows", type=int, default=3)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options))


async def _measure(servers: Servers, options: argparse.Namespace) -> dict[str, object]:
    async with migrated(servers) as (settings, connection):
        settings = settings.model_copy(update={"data_partitions": 1})
        now = await database_now(connection)
        begin = now.replace(microsecond=0, second=0) - timedelta(minutes=10)
        await _fill(connection, options, begin)
        text = "".join(
            RULE.format(number=number, every=options.every, over=options.over)
            for number in range(options.rules)
        )
        await connection.execute(statement("bench/set_watermark"), {"at": begin})
        await apply(connection, load_text(text), Actor("bench", "bench", begin))
        evaluator = CalcEvaluator(settings)
        ours: list[float] = []
        bare: list[float] = []
        results = 0
        for window in range(1, options.windows + 1):
            end = begin + timedelta(seconds=window * options.every)
            bare.append(await _bare(connection, end, options.over))
            await connection.execute(
                statement("bench/set_watermark"), {"at": end + timedelta(microseconds=1)}
            )
            began = time.perf_counter()
            results += await evaluator.calculate(connection)
            ours.append(time.perf_counter() - began)
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    datapoints = options.series * options.over
    assert results, "no window was calculated"
    return {
        "name": "calc",
        "series": options.series,
        "rules": options.rules,
        "every_s": options.every,
        "results": results,
        "behind_s": round(max(ours), 2),
        "memory_mb": round(memory_mb),
        "ours": datapoints / min(ours),
        "limit": datapoints / min(bare),
        "ratio": min(bare) / min(ours),
        "goal": 0.5,
    }


async def _fill(connection: Connection, options: argparse.Namespace, begin: datetime) -> None:
    await connection.execute(statement("bench/insert_partition"))
    parameters = {
        "begin": begin,
        "series": options.series,
        "rules": options.rules,
        "seconds": (options.windows + 1) * options.every,
    }
    await connection.execute(statement("bench/extend_calc_day"), parameters)
    await connection.execute(statement("bench/fill_calc_series"), parameters)
    await connection.execute(statement("bench/fill_calc_datapoints"), parameters)
    await connection.execute(statement("bench/analyze_calc"))


async def _bare(connection: Connection, end: datetime, over: int) -> float:
    began = time.perf_counter()
    async with connection.transaction():
        await connection.execute(
            statement("bench/aggregate_window"), {"end": end, "over": timedelta(seconds=over)}
        )
    return time.perf_counter() - began
