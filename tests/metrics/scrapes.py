"""Reads metrics as Prometheus does."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.conftest import environment_of
from tests.wait import eventually_sync
from tocsin.core.listen_address import ListenAddress
from tocsin.core.metrics import Metrics, format_metrics
from tocsin.core.settings import Settings
from tocsin.metrics.exposition import Exposition
from tocsin.metrics.server import serve_metrics

_SERVED = re.compile(r"metrics served.*address[^0-9]*127\.0\.0\.1:([0-9]+)")


class Samples:
    """The samples of an exposition, by name and labels."""

    def __init__(self, exposition: str) -> None:
        self.families: dict[str, Metric] = {}
        for family in text_string_to_metric_families(exposition):
            assert family.name not in self.families, "a family comes once"
            self.families[family.name] = family
        self._samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def get(self, name: str, **labels: str) -> float | None:
        return self._samples.get((name, tuple(sorted(labels.items()))))

    def __call__(self, name: str, **labels: str) -> float:
        value = self.get(name, **labels)
        assert value is not None, f"no {name} {labels}"
        return value


async def ask(port: int, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
    """Send a request; returns the status and the body."""
    return await raw(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def raw(port: int, request: bytes) -> tuple[int, str]:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            await writer.drain()
            answer = (await reader.read()).decode()
        finally:
            writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


async def scrape(port: int) -> Samples:
    status, body = await ask(port)
    assert status == 200
    return Samples(body)


class Process:
    """`tocsin run ROLE`, with its metrics on a free port."""

    def __init__(self, settings: Settings, role: str, variables: Mapping[str, str]) -> None:
        given = {
            **environment_of(settings),
            "TOCSIN_METRICS": "127.0.0.1:0",
            "TOCSIN_LOG_FORMAT": "console",
            **variables,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
        environment |= {name: value for name, value in given.items() if value is not None}
        self.popen = subprocess.Popen(
            [sys.executable, "-c", "from tocsin.cli import main; main()", "run", role],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._output = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self._output += line

    @property
    def port(self) -> int:
        eventually_sync(
            lambda: bool(_SERVED.search(self._output)) or self.popen.poll() is not None,
            "metrics are served",
            within=60,
        )
        served = _SERVED.search(self._output)
        assert served, self._output
        return int(served[1])

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self._reader.join()
        assert self.popen.stderr is not None
        self.popen.stderr.close()


@contextmanager
def process(settings: Settings, role: str, **variables: str) -> Iterator[Process]:
    started = Process(settings, role, variables)
    try:
        yield started
    finally:
        started.close()


class Counted:
    """What a group has counted since this was created: tests of one process share the groups."""

    def __init__(self, group: Metrics) -> None:
        self._group = group
        self._before = Samples(format_metrics([group]))

    def __call__(self, name: str, **labels: str) -> float:
        now = Samples(format_metrics([self._group])).get(name, **labels) or 0
        return now - (self._before.get(name, **labels) or 0)


@asynccontextmanager
async def served(exposition: Exposition) -> AsyncIterator[int]:
    """On a free port."""
    probe = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = int(probe.sockets[0].getsockname()[1])
    probe.close()
    async with serve_metrics(ListenAddress.parse(f"127.0.0.1:{port}"), exposition):
        yield port
