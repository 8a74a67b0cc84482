"""`tocsin run` without its servers: a missing address is an error, a server that is away is waited for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CommandLine, environment_of
from tests.cli.terminal import TOCSIN
from tests.wait import eventually
from tocsin.cli.run import _run, make_service
from tocsin.core.service import Service
from tocsin.core.settings import Settings


def test_run_refuses_to_start_without_its_servers(alone: CommandLine) -> None:
    assert alone("run", "cdc", exit_code=2).err.startswith("tocsin: TOCSIN_POSTGRES is not set: ")
    assert "'clock', 'cdc', 'worker', 'api'" in alone("run", "console", exit_code=2).err


def test_a_wrong_address_ends_run_at_once(alone: CommandLine, tmp_path: Path) -> None:
    alone.environment["TOCSIN_POSTGRES"] = "postgresql:///x?no_such_option=1"
    assert "is not a connection string" in alone("run", "cdc", exit_code=2).err
    alone.environment["TOCSIN_POSTGRES"] = f"postgresql:///tocsin?host={tmp_path}"
    assert "TOCSIN_NATS is not set" in alone("run", "cdc", exit_code=2).err


@pytest.mark.parametrize("role", ["clock", "cdc", "worker"])
def test_run_waits_for_a_postgres_that_is_away_when_it_starts(
    settings: Settings, tmp_path: Path, role: str
) -> None:
    away = psycopg.conninfo.make_conninfo(settings.postgres, host=str(tmp_path))
    given = environment_of(settings.model_copy(update={"postgres": away}))
    environment = {**os.environ, **{key: value or "" for key, value in given.items()}}
    process = subprocess.Popen([*TOCSIN, "run", role], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        waits: list[str] = []
        while len(waits) < 3 and (line := process.stderr.readline()):
            waits += [line] if "service waits" in line else []
        assert len(waits) == 3, "once when it starts, then at each try"
        assert all("cannot reach postgres" in line for line in waits)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


async def test_a_connection_that_breaks_during_the_start_is_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def broken(_: Settings) -> AsyncIterator[None]:
        for message in ("server closed the connection unexpectedly",):
            raise psycopg.OperationalError(message)
        yield

    stops: list[asyncio.Event] = []
    services: list[Service] = []

    def make(settings: Settings, role: str) -> Service:
        services.append(make_service(settings, role))
        return services[0]

    monkeypatch.setattr("tocsin.cli.session.database", broken)
    monkeypatch.setattr("tocsin.cli.run.stop_on_signals", stops.append)
    monkeypatch.setattr("tocsin.cli.run.make_service", make)
    command = asyncio.create_task(_run(settings, "clock"))

    async def is_healthy() -> bool:
        return command.done() or (bool(services) and services[0].problem is None)

    await eventually(is_healthy, "the service runs, or the command has ended")
    stops[0].set()
    await command
