"""Services killed during a transaction, or before the acknowledgement: every effect once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process

import pytest

from tests.client.service import effects, publish, until_handled
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

KILLS = 3
CHANCE = 0.05
EVENTS = 80


async def start(settings: Settings, concurrency: int, chance: float, seed: int) -> Process:
    given = {"TOCSIN_NATS": settings.nats, "TOCSIN_NAMESPACE": settings.namespace}
    arguments = (str(concurrency), str(chance), str(seed))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.client.consumer_process", *arguments),
        env={**os.environ, **given, "TOCSIN_POSTGRES": settings.postgres},
    )


@pytest.mark.parametrize(("seed", "concurrency"), [(20261117, 1), (20261118, 4), (20261119, 0)])
async def test_a_service_that_is_killed_repeatedly_handles_each_record_once(
    settings: Settings, ledger: Connection, seed: int, concurrency: int
) -> None:
    print(f"seed {seed}")  # noqa: T201
    await publish(settings, ledger, EVENTS)
    services = [await start(settings, concurrency, CHANCE, seed + n) for n in range(2)]
    kills = 0

    async def is_done() -> bool:
        nonlocal kills
        for number, service in enumerate(services):
            if service.returncode is not None:
                assert service.returncode == -signal.SIGKILL
                kills += 1
                chance = CHANCE if kills < KILLS else 0.0
                services[number] = await start(settings, concurrency, chance, seed + 10 * kills)
        return len(await effects(ledger)) >= EVENTS

    try:
        await eventually(is_done, "everything is done", within=200)
        await until_handled(ledger, range(1, EVENTS + 1))
        assert kills >= 1
    finally:
        for service in services:
            if service.returncode is None:
                service.kill()
            await service.wait()
