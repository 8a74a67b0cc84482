"""The publisher, as `tocsin run cdc` in a process of its own: its rate, latency and cost.

Measured are: the drain of a backlog, compared with a bare chain of messages and with one-by-one
publishing in the same run; the rate while other processes write; the time from the return of a
commit to a JetStream consumer, at a steady rate and after idle time; and the processor time when
idle and at that rate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from bench.database import bench_servers, migrated
from bench.processes import running
from bench.publish_limits import one_by_one, raw_chain
from bench.writer import commits, start_writer
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

_AT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_BATCH = 100
_ONE_BY_ONE = 5_000
_WRITERS = 2
_WITHIN_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench cdc")
    parser.add_argument("--backlog", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=500, help="commits a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement but the drain")
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.backlog, options.rate, options.seconds))


async def _measure(servers: Servers, backlog: int, rate: int, seconds: float) -> dict[str, object]:
    async with migrated(servers) as (settings, connection), open_bus(settings, "bench") as bus:
        await _fill(connection, backlog)
        alone = await one_by_one(bus, _ONE_BY_ONE)
        before_s = time.process_time()
        chain = await raw_chain(bus, backlog)
        chain_us = 1e6 * (time.process_time() - before_s) / backlog
        with running(settings, "cdc") as (publisher,):
            drained, cost_us = await _drain(bus, settings, publisher, backlog)
            idle = await _idle_percent(publisher, seconds)
            wake = await _latencies(bus, settings, publisher, rate=4, seconds=seconds)
            steady = await _latencies(bus, settings, publisher, rate=rate, seconds=seconds)
            sustained = await _sustained(bus, settings, seconds)
    return {
        "name": "cdc",
        "backlog": backlog,
        "drain_per_s": drained,
        "raw_chain_per_s": chain,
        "one_by_one_per_s": alone,
        "drain_to_one_by_one": drained / alone,
        "drain_cpu_us_per_record": cost_us,
        "raw_chain_cpu_us_per_message": chain_us,
        **sustained,
        "rate": rate,
        "commit_to_consumer_p50_ms": steady[0],
        "commit_to_consumer_p99_ms": steady[1],
        "cpu_percent_at_rate": steady[2],
        "cpu_percent_idle": idle,
        "wake_p50_ms": wake[0],
        "wake_p99_ms": wake[1],
        "ours": drained,
        "limit": chain,
        "ratio": drained / chain,
        "goal": "drain at least 40,000/s; p99 at most 10 ms; wake-up 2 ms; idle under 3% of a core",
    }


async def _fill(connection: Connection, count: int) -> None:
    for _ in range(count // _BATCH):
        await connection.execute(statement("bench/append_backlog"), {"count": _BATCH, "at": _AT})


async def _last(bus: Client, settings: Settings) -> int:
    with suppress(NotFoundError):
        return int((await bus.jetstream(timeout=10).stream_info(settings.stream)).state.last_seq)
    return 0


async def _until(bus: Client, settings: Settings, seq: int) -> int:
    """Wait until the stream has reached a sequence; returns its last one."""
    async with asyncio.timeout(_WITHIN_S):
        while True:
            last = await _last(bus, settings)
            if last >= seq:
                return last
            await asyncio.sleep(0.01)


async def _drain(
    bus: Client, settings: Settings, publisher: subprocess.Popen[bytes], backlog: int
) -> tuple[float, float]:
    """Records per second, and the publisher's processor time for each.

    Measured from the first published record on.
    """
    first = await _until(bus, settings, 1)
    began, before_s = time.perf_counter(), _cpu_s(publisher)
    await _until(bus, settings, backlog)
    count = backlog - first
    return count / (time.perf_counter() - began), 1e6 * (_cpu_s(publisher) - before_s) / count


async def _idle_percent(publisher: subprocess.Popen[bytes], seconds: float) -> float:
    await asyncio.sleep(1.0)
    before, began = _cpu_s(publisher), time.monotonic()
    await asyncio.sleep(seconds)
    return 100 * (_cpu_s(publisher) - before) / (time.monotonic() - began)


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of all threads of the process, user and system."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def _latencies(
    bus: Client, settings: Settings, publisher: subprocess.Popen[bytes], rate: int, seconds: float
) -> tuple[float, float, float]:
    """p50 and p99 from the return of a commit to the consumer, and the share of a core."""
    arrived: dict[int, float] = {}
    before = [0.0, 0.0]

    async def note(message: Msg) -> None:
        if not arrived:
            before[:] = [_cpu_s(publisher), time.monotonic()]
        arrived[message.metadata.sequence.stream] = time.monotonic()

    config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.NEW)
    subscription = await bus.jetstream().subscribe(
        f"{settings.subjects}.event.>", stream=settings.stream, cb=note, config=config
    )
    writer = start_writer(settings, rate, seconds, 1)
    output, _ = await asyncio.to_thread(writer.communicate)
    cpu = 100 * (_cpu_s(publisher) - before[0]) / (time.monotonic() - before[1])
    committed = commits(output)
    await _until(bus, settings, max(committed))
    await asyncio.sleep(0.2)
    await subscription.unsubscribe()
    taken = sorted(1000 * (arrived[seq] - at) for seq, at in committed.items())
    return statistics.median(taken), taken[int(len(taken) * 0.99) - 1], cpu


async def _sustained(bus: Client, settings: Settings, seconds: float) -> dict[str, float | int]:
    """The rate while two writers commit twenty at a time, as fast as they can."""
    first = await _last(bus, settings)
    writers = [start_writer(settings, 0, seconds, 20) for _ in range(_WRITERS)]
    outputs = await asyncio.gather(*(asyncio.to_thread(writer.communicate) for writer in writers))
    by_writer = [commits(output) for output, _ in outputs]
    published = await _last(bus, settings)
    written = max(max(times) for times in by_writer)
    taken_s = max(max(times.values()) for times in by_writer) - min(
        min(times.values()) for times in by_writer
    )
    began = time.perf_counter()
    await _until(bus, settings, written)
    return {
        "written_per_s": (written - first) / taken_s,
        "published_meanwhile_per_s": (published - first) / taken_s,
        "behind_at_the_end": written - published,
        "caught_up_after_s": time.perf_counter() - began,
    }
