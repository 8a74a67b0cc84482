"""Three clocks while everything is killed, frozen and restarted: each nominal time ends once (I1, I2, I6)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.faults.plan import SHORT, Faults, clocks_on, drain, run_plan, settings_of
from tests.faults.workload import account, arm_pulses, pause_pulses
from tests.wait import eventually_sync
from tocsin.embedded import embedded_servers

SEED = int(os.environ.get("TOCSIN_FAULT_SEED", "20260302"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory if there is one: servers that are killed and restarted read and write a lot."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tocsin-", dir=parent) as path:
        yield Path(path)


@pytest.mark.timeout(600)
def test_each_nominal_time_ends_exactly_once_under_any_fault(folder: Path) -> None:
    print(f"TOCSIN_FAULT_SEED={SEED}")  # noqa: T201
    with embedded_servers(folder / "servers", durable=False) as servers:
        summary = run_plan(servers, folder / "clocks", SEED, SHORT)
    print(summary)  # noqa: T201
    assert summary.account.is_clean, summary
    assert summary.account.fired + summary.account.missed >= SHORT.timers
    assert (summary.inside_transaction, summary.zombies_rejected) == (6, 2)


@pytest.mark.timeout(600)
def test_a_clock_frozen_between_append_and_commit_is_rejected_and_duplicates_nothing(folder: Path) -> None:
    with embedded_servers(folder / "servers", durable=False) as servers:
        settings = settings_of(servers, folder / "clocks")
        firsts = asyncio.run(arm_pulses(settings))
        with clocks_on(settings, folder / "clocks", 2) as clocks:
            zombie = Faults(servers, clocks).freeze_inside("appended")
            frozen_epoch = zombie.epoch
            drain(clocks)
            asyncio.run(pause_pulses(settings))
        after = account(settings.postgres, firsts)
        with psycopg.connect(settings.postgres) as connection:
            epochs = connection.execute("select epoch from tocsin.log_commit order by last_seq").fetchall()
    assert after.is_clean, after
    assert [epoch for (epoch,) in epochs] == sorted(epoch for (epoch,) in epochs)
    assert epochs[-1][0] > frozen_epoch > 0


@pytest.mark.timeout(600)
def test_a_schedule_fires_on_postgres_16(folder: Path) -> None:
    with embedded_servers(folder / "servers", durable=False, postgres_version=16) as servers:
        settings = settings_of(servers, folder / "clocks")
        firsts = asyncio.run(arm_pulses(settings))
        with clocks_on(settings, folder / "clocks", 1) as clocks:
            eventually_sync(lambda: clocks.fired_since(1), "the clock fires", within=60)
            assert clocks.read("select current_setting('server_version_num')::int / 10000") == (16,)
            asyncio.run(pause_pulses(settings))
        after = account(settings.postgres, firsts)
    assert after.is_clean, after
    assert after.fired >= 1
