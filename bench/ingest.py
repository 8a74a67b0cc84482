"""Datapoints per second through one worker, compared with COPY and insert in the same run.

Every series is watched (`--bare`: none is). The limit is the minimum of work: it copies the same
rows in batches of the same size and inserts them into the same table, with its indexes, durably. It
reads no stream, checks nothing and keeps no current values.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from contextlib import suppress
from datetime import timedelta

from nats.js.errors import NotFoundError

from bench.database import bench_servers, migrated
from bench.processes import running
from rules.apply import apply
from rules.documents.load import load_text
from rules.engine.inputs import Arrival
from rules.lanes.data_stream import ensure_data_stream, partition_subject
from rules.lanes.datapoint_store import PlacedArrival, prepare_staging, staged_lines
from schemas.wire.subjects import datapoint_subject
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

KEYS = 100
ROWS_AT_ONCE = 10_000
WATCHED = """
datapoint_type:
  name: sensor
  key: dsp.**
  interval: 1h
"""


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench ingest")
    parser.add_argument("--count", type=int, default=300_000)
    parser.add_argument("--owners", type=int, default=200)
    parser.add_argument("--per-message", type=int, default=100)
    parser.add_argument("--bare", action="store_true")
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options))


async def _measure(servers: Servers, options: argparse.Namespace) -> dict[str, object]:
    count, owners, per_message = options.count, options.owners, options.per_message
    async with migrated(servers) as (settings, connection):
        if not options.bare:
            await apply(
                connection, load_text(WATCHED), Actor("bench", "bench", await database_now(connection))
            )
        ends = await _publish(settings, connection, count, owners, per_message)
        before = await _raw(connection, count // 2, owners)
        await connection.execute(statement("bench/truncate_datapoints"))
        ours = await _ours(settings, connection, ends, count)
        await connection.execute(statement("bench/truncate_datapoints"))
        # Before and after: the load of the machine changes over time.
        raw = (before + await _raw(connection, count // 2, owners)) / 2
    return {
        "name": "ingest --bare" if options.bare else "ingest",
        "datapoints": count,
        "series": owners * min(KEYS, per_message),
        "per_message": per_message,
        "ours": ours,
        "limit": raw,
        "ratio": ours / raw,
        "goal": 0.4,
    }


async def _publish(
    settings: Settings, connection: Connection, count: int, owners: int, each: int
) -> dict[int, int]:
    """The last sequence of each partition."""
    now = await database_now(connection)
    bus = await connect_bus(settings, "bench")
    js = bus.jetstream(timeout=60)
    await ensure_data_stream(js, settings, 1)
    for number in range(count // each):
        ts = (now + timedelta(milliseconds=number)).isoformat()
        batch = [{"key": f"dsp.sensor.k{key % KEYS}", "value": 20.5 + key, "ts": ts} for key in range(each)]
        subject = datapoint_subject(settings.subjects, f"plant-{number % owners}", "")
        await bus.publish(subject, json.dumps({"batch": batch}).encode())
        if number % 500 == 499:
            await bus.flush(timeout=60)
    last = await js.publish(subject, json.dumps({"batch": batch}).encode())
    ends = {}
    for partition in range(settings.data_partitions):
        with suppress(NotFoundError):
            message = await js.get_last_msg(settings.data_stream, partition_subject(settings, partition))
            ends[partition] = int(message.seq or 0)
    assert max(ends.values()) == last.seq
    await bus.close()
    return ends


async def _raw(connection: Connection, count: int, owners: int) -> float:
    now = await database_now(connection)
    await prepare_staging(connection)
    days = {"first": now.date(), "last": now.date() + timedelta(days=1)}
    await connection.execute(statement("rules.lanes/extend_datapoints"), days)
    batches = []
    for begin in range(0, count, ROWS_AT_ONCE):
        rows = [
            PlacedArrival(
                row % KEYS,
                Arrival(
                    now,
                    row // KEYS,
                    f"plant-{row // KEYS % owners}",
                    f"dsp.sensor.k{row % KEYS}",
                    20.5,
                    now,
                    {},
                ),
            )
            for row in range(begin, begin + ROWS_AT_ONCE)
        ]
        batches.append(staged_lines(rows))
    began = time.perf_counter()
    for lines in batches:
        async with connection.transaction():
            async with (
                connection.cursor() as cursor,
                cursor.copy(statement("rules.lanes/stage_datapoints")) as copy,
            ):
                await copy.write(lines)
            await connection.execute(statement("rules.lanes/store_datapoints"))
    return count / (time.perf_counter() - began)


async def _ours(settings: Settings, connection: Connection, ends: dict[int, int], count: int) -> float:
    """The rate while the worker holds its partitions, until all messages are read."""
    with running(settings, "cdc", "worker"):
        began = 0.0
        async with asyncio.timeout(300):
            while True:
                rows = await fetch_all(connection, "bench/read_data_lane")
                began = began if any(held for _, _, held in rows) and began else time.perf_counter()
                if rows and all(last >= ends.get(partition, 0) for partition, last, _ in rows):
                    return count / (time.perf_counter() - began)
                await asyncio.sleep(0.01)
