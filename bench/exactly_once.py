"""Counts records that are not exactly once in the stream, after a long run of random faults.

Writers commit and roll back in parallel. Two publishers without any election publish the same
records. At random, publishers are killed and frozen, NATS is killed, and Postgres crashes. At the
end a plain consumer reads the stream, and it is compared with the tables. `--cluster` runs on three
NATS servers with three replicas, and kills the leader of the stream. The seed is printed, and
`--seed` repeats its plan (not the exact times, which depend on the machine).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import secrets
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict

import psycopg
from nats.errors import Error as NatsError

from bench.database import bench_servers, migrated
from tests.cdc.published_records import (
    difference,
    last_sequence,
    log,
    smaller,
    with_long_timeouts,
    write_some,
)
from tests.cdc.publishers import kill, start
from tests.nats_cluster import nats_cluster
from tests.streams import read_stream
from tocsin.core.bus import connect_bus
from tocsin.core.db import connect, fetch_one
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, Postgres, Servers

_WRITERS = 3
_RECORDS_BETWEEN = (100, 700)
_FREEZE_S = (0.2, 3.5)
_DOWN_S = (0.1, 1.0)
_FAULTS = {"kills": 10, "freezes": 5, "nats_kills": 4, "postgres_crashes": 2}
_WITHIN_S = 300.0
# psycopg raises a Rollback whose connection is closed.
_OUTAGE = (NatsError, TocsinError, psycopg.Error, psycopg.Rollback, OSError, TimeoutError)


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench exactly-once")
    parser.add_argument("--events", type=int, default=30_000, help="records to commit, at least")
    parser.add_argument("--cluster", action="store_true", help="three NATS servers, three replicas")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", file=sys.stderr, flush=True)
    # Lost connections are expected here.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    with bench_servers() as servers, _buses(servers, options.cluster) as buses:
        return asyncio.run(_measure(servers, buses, options.events, options.seed))


@contextmanager
def _buses(servers: Servers, cluster: bool) -> Iterator[Sequence[Nats]]:
    if not cluster:
        yield [servers.nats]
        return
    with nats_cluster() as nodes:
        yield nodes


async def _measure(servers: Servers, buses: Sequence[Nats], events: int, seed: int) -> dict[str, object]:
    chance = random.Random(seed)
    async with migrated(servers) as (default, _):
        pass
    settings = smaller(
        default,
        nats=",".join(bus.url for bus in buses),
        stream_replicas=min(3, len(buses)),
        cdc_chunk=chance.choice((5, 50, 500)),
        cdc_in_flight=1000,
    )
    run = _Run(settings, servers.postgres, buses, chance)
    began = time.perf_counter()
    await run.go(events, seed)
    wrong, committed = await run.compare()
    total = sum(wrong.values())
    return {
        "name": "exactly-once",
        "seed": seed,
        "servers": len(buses),
        "chunk": settings.cdc_chunk,
        "events": committed,
        "kills": run.counts["kills"],
        "freezes": run.counts["freezes"],
        "nats_kills": run.counts["nats_kills"],
        "postgres_crashes": run.counts["postgres_crashes"],
        "publishers_ended": run.counts["publishers_ended"],
        **wrong,
        "seconds": time.perf_counter() - began,
        "ours": total,
        "limit": 0,
        "ratio": total / max(1, committed),
        "goal": "nothing lost, duplicated, out of order or different (ratio 0)",
    }


class _Run:
    def __init__(
        self, settings: Settings, postgres: Postgres, buses: Sequence[Nats], chance: random.Random
    ) -> None:
        self._settings = settings
        self._postgres = postgres
        self._buses = buses
        self._chance = chance
        self._written = 0
        self._publishers: list[Process] = []
        self.counts: Counter[str] = Counter()

    async def go(self, events: int, seed: int) -> None:
        self._publishers = [await self._start() for _ in range(2)]
        enough = asyncio.Event()
        writers = [asyncio.create_task(self._write(seed + n, enough)) for n in range(_WRITERS)]
        reviving = asyncio.create_task(self._revive())
        try:
            while self._written < events:
                await self._until_written(writers, self._written + self._chance.randint(*_RECORDS_BETWEEN))
                (fault,) = self._chance.choices(list(_FAULTS), weights=list(_FAULTS.values()))
                await getattr(self, f"_{fault}")()
                self.counts[fault] += 1
            enough.set()
            await asyncio.gather(*writers)
            await self._until_published()
        finally:
            enough.set()
            reviving.cancel()
            for process in self._publishers:
                await kill(process)

    async def _until_written(self, writers: Sequence[asyncio.Task[None]], count: int) -> None:
        async with asyncio.timeout(_WITHIN_S):
            while self._written < count:
                await asyncio.wait(writers, timeout=0.05)
                for writer in writers:
                    if writer.done():  # only after an error
                        writer.result()

    async def compare(self) -> tuple[dict[str, int], int]:
        async with await psycopg.AsyncConnection.connect(self._settings.postgres) as connection:
            rows = await log(connection)
        stored = await read_stream(self._settings, await last_sequence(self._settings), within=_WITHIN_S)
        return asdict(difference(self._settings, stored, rows)), len(rows)

    async def _start(self) -> Process:
        return await start(self._settings, stdout=DEVNULL, stderr=DEVNULL)

    async def _write(self, writer: int, enough: asyncio.Event) -> None:
        """A commit whose answer was lost may count or not: the table decides at the end."""
        chance = random.Random(writer)
        number = 0
        while not enough.is_set():
            with suppress(*_OUTAGE):
                connection = await connect(with_long_timeouts(self._settings), f"bench writer {writer}")
                try:
                    while not enough.is_set():
                        number += 1
                        committed = await write_some(connection, chance, writer, number)
                        self._written += committed
                finally:
                    await connection.close()
            await asyncio.sleep(0.05)

    async def _revive(self) -> None:
        """Restart publishers that ended because a server was unreachable, as a service would."""
        while True:
            await asyncio.sleep(0.1)
            for number, process in enumerate(self._publishers):
                if process.returncode is not None:
                    self.counts["publishers_ended"] += 1
                    self._publishers[number] = await self._start()

    def _random_publisher(self) -> Process | None:
        living = [process for process in self._publishers if process.returncode is None]
        return self._chance.choice(living) if living else None

    async def _kills(self) -> None:
        victim = self._random_publisher()
        if victim is not None:
            number = self._publishers.index(victim)
            victim.kill()
            await victim.wait()
            self._publishers[number] = await self._start()

    async def _freezes(self) -> None:
        """A frozen publisher resumes with messages that the other one has sent in the meantime."""
        victim = self._random_publisher()
        if victim is not None:
            with suppress(ProcessLookupError):
                victim.send_signal(signal.SIGSTOP)
                await asyncio.sleep(self._chance.uniform(*_FREEZE_S))
                victim.send_signal(signal.SIGCONT)

    async def _nats_kills(self) -> None:
        bus = await self._leader()
        bus.kill()
        await asyncio.sleep(self._chance.uniform(*_DOWN_S))
        bus.start()
        await self._until_healthy()

    async def _postgres_crashes(self) -> None:
        self._postgres.kill()
        await asyncio.sleep(self._chance.uniform(*_DOWN_S))
        self._postgres.start()

    async def _leader(self) -> Nats:
        """The leader of the stream, in a cluster."""
        if len(self._buses) == 1:
            return self._buses[0]
        with suppress(*_OUTAGE):
            client = await connect_bus(self._settings, "bench")
            try:
                info = await client.jetstream(timeout=2).stream_info(self._settings.stream)
                named = {getattr(bus, "server_name", ""): bus for bus in self._buses}
                return named[info.cluster.leader] if info.cluster else self._buses[0]
            finally:
                await client.close()
        return self._chance.choice(self._buses)

    async def _until_healthy(self) -> None:
        """Wait until the stream answers: an earlier kill would only prolong the outage."""
        async with asyncio.timeout(_WITHIN_S):
            while True:
                with suppress(*_OUTAGE):
                    if await last_sequence(self._settings) >= 0:
                        return
                await asyncio.sleep(0.1)

    async def _until_published(self) -> None:
        async with asyncio.timeout(_WITHIN_S):
            while True:
                if not await self._behind():
                    return
                await asyncio.sleep(0.1)

    async def _behind(self) -> bool:
        with suppress(*_OUTAGE):
            async with await psycopg.AsyncConnection.connect(self._settings.postgres) as connection:
                row = await fetch_one(connection, "cdc/read_head")
            return row is None or await last_sequence(self._settings) != row[0]
        return True
