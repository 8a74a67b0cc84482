"""pytest fixtures for the tests of services: `pytest_plugins = ["tocsin.client.pytest_plugin"]`.

`tocsin_servers` are Postgres and NATS, started once for all tests of a process. `tocsin_system` is a
new instance on them for each test, ready and with a clock that the test advances.

Why no entry point: a plugin that is installed with the client would be loaded by every pytest of
every project that has it, also where no test needs a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tocsin.client.testing import Servers, TocsinSystem, embedded_servers
from tocsin.client.testing import tocsin_system as run_system


@pytest.fixture(scope="session")
def tocsin_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder: Path = tmp_path_factory.mktemp("tocsin")
    with embedded_servers(folder, durable=False) as servers:
        yield servers


@pytest.fixture
def tocsin_system(tocsin_servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[TocsinSystem]:
    """The environment names the instance, so that the client finds it without arguments."""
    with run_system(tocsin_servers) as system:
        for name, value in system.environment.items():
            monkeypatch.setenv(name, value)
        yield system
