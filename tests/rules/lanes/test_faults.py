"""Workers are killed and frozen inside their batches and servers restarted; the effects are counted (I6, I7)."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cdc.published_records import with_long_timeouts
from tests.faults.clocks import WITHIN_S
from tests.faults.plan import settings_of
from tests.rules.lanes.counting_work import effects, make_effects
from tests.rules.lanes.lane_setup import OWNERS, make_stream, send
from tests.rules.lanes.workers import Workers, inflict
from tocsin.core.db import connect
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_servers

FAULTS = (
    "kill planned",
    "kill written",
    "stop planned",
    "nats written",
    "stop written",
    "postgres written",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tocsin-", dir=place) as made:
        yield Path(made)


async def prepare(settings: Settings) -> None:
    await make_stream(settings)
    connection = await connect(with_long_timeouts(settings), "test")
    await make_effects(connection)
    await connection.close()


@contextmanager
def workers_on(settings: Settings, folder: Path, count: int) -> Iterator[Workers]:
    asyncio.run(prepare(settings))
    workers = Workers(settings, folder, count)
    try:
        yield workers
    except BaseException as error:
        error.add_note(workers.log_ends())
        raise
    finally:
        workers.close()


class Producer(threading.Thread):
    """Sends one datapoint per owner and round until `finish`; NATS may be unreachable in between."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self._end = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        while not self._end.is_set():
            asyncio.run(self._send(self.rounds))
            self.rounds += 1

    async def _send(self, number: int) -> None:
        """Each owner once, even if NATS is unreachable in between: a repeated send has the same message id."""
        left = list(OWNERS)
        while left:
            try:
                await send(self._settings, [number], left[:1], identity=f"{number}/{left[0]}")
                left.pop(0)
            except (
                Exception,
                asyncio.CancelledError,
            ):  # nats-py closes a lost connection with a cancellation
                self._end.wait(0.05)

    def finish(self) -> int:
        self._end.set()
        self.join(WITHIN_S)
        return self.rounds


@pytest.mark.timeout(600)
def test_each_message_has_its_effects_once_although_processes_are_killed_and_frozen(folder: Path) -> None:
    with embedded_servers(folder / "servers", durable=False) as servers:
        settings = settings_of(servers, folder / "lanes")
        with workers_on(settings, folder / "lanes", 3) as workers:
            producer = Producer(settings)
            producer.start()
            for fault in FAULTS:
                inflict(servers, workers, fault)
            rounds = producer.finish()
            workers.wait_for_effects(rounds * len(OWNERS))
        effects = asyncio.run(_effects(settings))
    assert rounds > 0
    for owner in OWNERS:
        mine = [row["value"] for row in effects if row["owner"] == owner]
        assert mine == list(range(rounds)), owner
    assert len({row["pid"] for row in effects}) > 1


@pytest.mark.timeout(600)
def test_a_killed_holder_is_replaced_when_its_lease_ends(folder: Path) -> None:
    """One replacement in time is enough: a busy machine may be late, a wrong deadline is always late."""
    took_s: list[float] = []
    with embedded_servers(folder / "servers", durable=False) as servers:
        settings = settings_of(servers, folder / "lanes")
        with workers_on(settings, folder / "lanes", 2) as workers:
            limit_s = settings.lease_ttl_s + 0.5
            while len(took_s) < 8 and not any(took <= limit_s for took in took_s):
                victim, survivor = workers.processes
                workers.wait_until_held_by({victim.pid, survivor.pid})
                victim.kill()
                began = time.monotonic()
                workers.wait_until_held_by({survivor.pid})
                took_s.append(time.monotonic() - began)
                workers.replace(victim)
    assert min(took_s) <= limit_s, took_s


async def _effects(settings: Settings) -> list[dict[str, object]]:
    connection = await connect(with_long_timeouts(settings), "test")
    try:
        return await effects(connection)
    finally:
        await connection.close()
