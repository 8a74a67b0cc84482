"""Fixtures of all tests: one pair of real servers per process, a database and a namespace per test.

Each database is cloned from a migrated template. In a parallel run (`-n auto`) each worker process has
its own pair of servers, so that tests share nothing but the machine.

The sessions of the tests have long timeouts, and properties have no deadline: a slow machine is no
failure. With CI in the environment every run tries the same examples (Hypothesis then chooses its
profile `ci`); elsewhere each run tries new ones.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest

from migrations.movable_time import let_sessions_set_time
from migrations.roles.create import create_roles
from migrations.runner import migrate
from tests.databases import clone_template, drop_database, make_template
from tests.sessions import connection, sessions, watch
from tocsin.core.db import connect
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_servers

__all__ = ["connection", "sessions", "watch"]
_numbers = itertools.count(1)

# A shell starts its background jobs with SIGINT ignored, and children would inherit that: the tests of
# Ctrl-C need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "tests",
    parent=hypothesis.settings.get_profile(hypothesis.settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        # A fixture is created once for all examples of a test.
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
)
hypothesis.settings.load_profile("tests")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """The number of workers of `-n auto`: two for each core, because tests mostly wait."""
    return min(2 * (os.cpu_count() or 1), 8)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The data is in memory if the machine allows it: cloning a database is mostly writing files."""
    memory = Path("/dev/shm")
    directory = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="tocsin-tests-", dir=directory) as folder,
        embedded_servers(Path(folder), durable=False) as started,
    ):
        yield started


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """The URL of the server with a migrated template database."""
    make_template(servers.postgres_url)

    async def apply() -> None:
        settings = Settings(postgres=with_database(servers.postgres_url, "tocsin_template"), lease_ttl_s=60.0)
        connection = await connect(settings, "template")
        await migrate(connection)
        await let_sessions_set_time(connection)
        await create_roles(connection)
        await connection.close()

    asyncio.run(apply())
    return servers.postgres_url


@pytest.fixture
def settings(servers: Servers, template: str) -> Iterator[Settings]:
    """Settings with a new database, and a namespace of its own in NATS.

    The TTL is longer than any stall of the machine: neither a lease (the whole TTL) nor a session that is
    idle in a transaction (half of it) ends by itself.
    """
    name = f"test_{next(_numbers)}"
    clone_template(template, name)
    yield Settings(
        postgres=with_database(template, name),
        postgres_roles=True,
        nats=servers.nats_url,
        namespace=name,
        lease_ttl_s=10.0,
        log_format="console",
    )
    drop_database(template, name)


@pytest.fixture(autouse=True)
def patient_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service connects again if NATS was too slow; a test does not."""
    monkeypatch.setattr("tocsin.core.bus._PROBE_S", 30.0)
    monkeypatch.setattr("tocsin.core.bus._CONNECT_S", 30.0)


@pytest.fixture
def short_lease(settings: Settings) -> Settings:
    """Settings for tests that wait until the lease of a dead or frozen process ends."""
    return settings.model_copy(update={"lease_ttl_s": 1.0, "worker_ack_wait_s": 1.0})


def with_database(url: str, name: str) -> str:
    return psycopg.conninfo.make_conninfo(url, dbname=name)
