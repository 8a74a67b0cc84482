"""An installation under load: servers, links, two processes of each service, a consumer, a producer.

Guarantee: each part (clock, cdc, worker, consumer, producer) reaches each server through a link of its
own. A process that ends is started again, as a supervisor does it. Everything that was started or
mounted is gone after the block.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from nats.errors import Error as NatsError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.faults.chaos import consumer, prepare
from tests.faults.chaos.background import Background
from tests.faults.chaos.link import Dial, Link
from tests.faults.chaos.load import RULES, SeriesLoad
from tests.faults.chaos.slow_disk import SyncingNats
from tests.faults.chaos.standby import Standby, replicates, require_standby
from tests.faults.processes import TOCSIN, WITHIN_S, Processes, environment
from tests.faults.workload import arm_one_shots, pause_pulses
from tests.nats_cluster import Node, nats_cluster
from tests.ports import at_port, free_ports
from tests.rules.delivery.receivers import Receiver, receiver
from tests.rules.lanes.lane_setup import jetstream
from tests.wait import eventually_sync
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, Postgres, embedded_nats, embedded_postgres

SERVICES = ("clock a", "clock b", "cdc a", "cdc b", "worker a", "worker b")
NAMES = (*SERVICES, "consumer")
PARTS = ("clock", "cdc", "worker", "consumer")
_SERVICE_DATABASE = "service"
_POLL_S = 0.1
_ANSWER_S = 5.0
_ONE_SHOTS = 150
_ONE_SHOTS_OVER_S = 15.0


@dataclass(frozen=True)
class Layout:
    """The differences between installations that a fault needs before it happens."""

    standby: str = ""
    """`sync` or `async`."""
    small_disk: str = ""
    """`postgres` or `nats`: its data is on a file system of a fixed size."""
    is_cluster: bool = False
    """Three NATS servers with three replicas, which the services reach without links."""
    faketime: str = ""
    """The part whose processes have a wall clock of their own."""
    library: str = ""
    """The path of libfaketime."""
    slow_disk: str = ""
    """`postgres` or `nats`: it syncs every commit or message, so that a delay of a sync has an effect."""


class _Parts(Processes):
    def __init__(self, installation: Installation, ports: dict[str, int]) -> None:
        self._installation = installation
        self.ports = ports
        super().__init__(installation.settings, NAMES, installation.folder)

    def command(self, name: str) -> list[str]:
        if name == "consumer":
            # By its path: another source tree may be older than this module.
            return [sys.executable, str(Path(consumer.__file__))]
        return super().command(name)

    def environment(self, name: str) -> dict[str, str]:
        return self._installation.environment(name, self.ports[name])


class Installation:
    def __init__(self, folder: Path, layout: Layout, background: Background) -> None:
        self.folder = folder
        self.layout = layout
        self.background = background
        self.links: dict[tuple[str, str], Link] = {}
        self.standby: Standby | None = None
        self.is_failed_over = False
        self.firsts: dict[str, Any] = {}
        self.requests: Receiver = Receiver()
        self.restarted: list[str] = []
        """The processes that ended by themselves, each with the last line of its log."""
        self.sources = dict.fromkeys(NAMES, Path.cwd())
        """The source tree that each process runs."""
        self.first_source = Path.cwd()
        """The source tree that makes the database and the data stream, and applies the rules."""
        self._producing: Future[None] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            self._start_servers(stack)
            self._prepare(stack)
            self._start_links(stack)
            self.processes = _Parts(self, dict(zip(NAMES, free_ports(len(NAMES)), strict=True)))
            stack.callback(self.processes.close)
            self.load = SeriesLoad(self._settings_of("producer"))
            self._producing = self.background.start(self.load.run())
            stack.callback(lambda: self.background.call(self.load.end()))
            arm_one_shots(self.settings.postgres, _ONE_SHOTS, 2.0, _ONE_SHOTS_OVER_S)
            yield

    def _start_servers(self, stack: ExitStack) -> None:
        for name, size in (("postgres", "600m"), ("nats", "100m")):
            (self.folder / name).mkdir()
            if self.layout.small_disk == name:
                stack.enter_context(mounted(self.folder / name, size))
        self.postgres: Postgres = stack.enter_context(
            embedded_postgres(self.folder / "postgres", durable=self.layout.slow_disk == "postgres")
        )
        self.nodes: list[Node] = stack.enter_context(nats_cluster()) if self.layout.is_cluster else []
        self.nats: Nats = self.nodes[0] if self.nodes else self._start_nats(stack)
        self.settings = Settings(
            postgres=self.postgres.url,
            nats=self.nats_urls,
            namespace="chaos",
            log_format="json",
            stream_replicas=len(self.nodes) or 1,
        )

    def _start_nats(self, stack: ExitStack) -> Nats:
        if self.layout.slow_disk != "nats":
            return stack.enter_context(embedded_nats(self.folder / "nats"))
        server = SyncingNats(self.folder / "nats")
        stack.callback(server.close)
        server.start()
        return server

    def _prepare(self, stack: ExitStack) -> None:
        started: Future[None] = Future()
        ended = asyncio.Event()
        self.background.start(self._receive(started, ended))
        started.result(WITHIN_S)
        stack.callback(lambda: self.background.call(_set(ended)))
        self._open_link(stack, "worker", "receiver", self._dial("receiver"))
        with psycopg.connect(self.settings.postgres, autocommit=True) as connection:
            connection.execute(f"create database {_SERVICE_DATABASE}")
        with psycopg.connect(self.service_database, autocommit=True) as connection:
            connection.execute(consumer.CREATE_TABLES.encode())
        self.firsts = self._write_first()

    async def _receive(self, started: Future[None], ended: asyncio.Event) -> None:
        async with receiver() as self.requests:
            started.set_result(None)
            await ended.wait()

    def _write_first(self) -> dict[str, Any]:
        """The first times of the pulses."""
        rules = self.folder / "rules.yaml"
        rules.write_text(RULES.format(port=self.links["worker", "receiver"].port), encoding="utf-8")
        command = [sys.executable, str(Path(prepare.__file__)), str(rules)]
        done = self.run(command, self.first_source, WITHIN_S)
        assert done.returncode == 0, done.stderr
        lines: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return {name: datetime.fromisoformat(first) for name, first in lines.items()}

    def _start_links(self, stack: ExitStack) -> None:
        for part in (*PARTS, "producer"):
            for server in ("postgres", "nats", *(["standby"] if self.layout.standby else [])):
                self._open_link(stack, part, server, self._dial(server))
        if self.layout.standby:
            replication = self._open_link(stack, "standby", "postgres", self._dial("postgres"))
            (self.folder / "standby").mkdir()
            self.standby = Standby(self.folder / "standby", self.postgres, replication.port)
            stack.callback(self.standby.close)
            self.standby.start()
            eventually_sync(lambda: replicates(self.postgres), "the standby has caught up", WITHIN_S)
            if self.layout.standby == "sync":
                require_standby(self.postgres)

    def _open_link(self, stack: ExitStack, part: str, server: str, dial: Dial) -> Link:
        link = self.links[part, server] = Link(dial)
        self.background.call(link.open())
        stack.callback(lambda: self.background.call(link.close()))
        return link

    def _dial(self, server: str) -> Dial:
        def dial() -> Any:
            if server == "receiver":
                return asyncio.open_connection("127.0.0.1", self.requests.port)
            if server == "nats":
                return asyncio.open_connection("127.0.0.1", urlsplit(self.nats.url).port)
            postgres = self.postgres if server == "postgres" else self.standby
            if postgres is None:
                raise ConnectionRefusedError
            socket: dict[str, Any] = conninfo_to_dict(postgres.url)
            return asyncio.open_unix_connection(f"{socket['host']}/.s.PGSQL.{socket['port']}")

        return dial

    def postgres_url(self, part: str, database: str = "postgres") -> str:
        """The address of the database for a part: all hosts, and the one that accepts writes."""
        servers = ("postgres", "standby") if self.layout.standby else ("postgres",)
        hosts = ",".join(f"127.0.0.1:{self.links[part, server].port}" for server in servers)
        more = "?target_session_attrs=read-write" if self.layout.standby else ""
        return f"postgresql://postgres@{hosts}/{database}{more}"

    @property
    def nats_urls(self) -> str:
        return ",".join(node.url for node in self.nodes) or self.nats.url

    def _settings_of(self, part: str) -> Settings:
        link = self.links[part, "nats"].port
        nats = self.nats_urls if self.layout.is_cluster else at_port(self.nats.url, link)
        return self.settings.model_copy(update={"postgres": self.postgres_url(part), "nats": nats})

    def environment(self, name: str, port: int) -> dict[str, str]:
        part = name.split()[0]
        more = {
            "TOCSIN_METRICS": f"127.0.0.1:{port}",
            "TOCSIN_EGRESS_ALLOW": "127.0.0.1",
            "TOCSIN_LOG_FORMAT": "json",
            "TOCSIN_STREAM_REPLICAS": str(self.settings.stream_replicas),
            consumer.DATABASE: self.postgres_url("consumer", _SERVICE_DATABASE),
        }
        if part == self.layout.faketime:
            more |= self.faketime_environment()
        return {**environment(self._settings_of(part)), **more, **importing(self.sources[name])}

    def faketime_environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": self.layout.library,
            "FAKETIME_TIMESTAMP_FILE": str(self.folder / "offset"),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @property
    def database(self) -> Postgres:
        """The server that accepts writes, for the driver of the run."""
        return self.standby if self.is_failed_over and self.standby is not None else self.postgres

    @property
    def direct(self) -> Settings:
        """The settings of an operator: no link that a fault can break."""
        return self.settings.model_copy(update={"postgres": self.database.url, "nats": self.nats_urls})

    @property
    def service_database(self) -> str:
        return make_conninfo(self.database.url, dbname=_SERVICE_DATABASE)

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._read(self.database.url, query, parameters)

    def read_service(self, query: str) -> list[tuple[Any, ...]]:
        return self._read(self.service_database, query, ())

    def _read(self, url: str, query: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            connection.execute("set statement_timeout = '20s'")
            return connection.execute(query.encode(), parameters or None).fetchall()

    def names_of(self, part: str) -> list[str]:
        return [name for name in NAMES if name.split()[0] == part]

    def supervise(self) -> None:
        """Start what ended. The main thread calls this while it waits."""
        ended = self.processes.ended()
        if ended:
            self.restarted += [f"{name}: {self._last_line(name)}" for name in ended]
            self.processes.kill(*ended)

    def _last_line(self, name: str) -> str:
        log = self.folder / f"{name.replace(' ', '-')}.log"
        return (log.read_text(encoding="utf-8").splitlines() or [""])[-1]

    def wait(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until_s, f"{seconds} s", seconds + WITHIN_S)

    def until(self, holds: Callable[[], bool], what: str, within: float) -> None:
        paused_until_s = 0.0

        def poll() -> bool:
            nonlocal paused_until_s
            if time.monotonic() < paused_until_s:
                return False
            paused_until_s = time.monotonic() + _POLL_S
            self.supervise()
            return holds()

        eventually_sync(poll, what, within)

    def run_command(self, *words: str, within: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command of `tocsin` as an operator."""
        return self.run([*TOCSIN, *words], Path.cwd(), within)

    def run(self, command: Sequence[str], source: Path, within: float) -> subprocess.CompletedProcess[str]:
        """Run a program that imports the code of `source`, with the addresses of an operator."""
        return subprocess.run(
            command,
            env={**environment(self.direct), **importing(source)},
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )

    def end_load(self) -> int:
        """End the producer and the pulses; the number of acknowledged rounds."""
        self.background.call(self.load.end())
        assert self._producing is not None
        self._producing.result(WITHIN_S)
        asyncio.run(pause_pulses(self.direct))
        return self.load.acknowledged

    def last_sequence(self, stream: str | None = None) -> int:
        return int(self.background.call(self._last_sequence(stream or self.settings.stream)))

    def data_leader(self) -> str:
        """The name of the NATS server that leads the data stream; empty without one."""
        return self.background.call(self._data_leader())

    async def _data_leader(self) -> str:
        with suppress(NatsError, OSError, TimeoutError):
            async with asyncio.timeout(_ANSWER_S), jetstream(self.direct) as js:
                cluster = (await js.stream_info(self.settings.data_stream)).cluster
                return (cluster.leader if cluster else None) or ""
        return ""

    async def _last_sequence(self, stream: str) -> int:
        async with asyncio.timeout(_ANSWER_S), jetstream(self.direct) as js:
            return int((await js.stream_info(stream)).state.last_seq)

    def logs(self) -> str:
        texts = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(encoding='utf-8')[-1500:]}" for log in texts)


def importing(source: Path) -> dict[str, str]:
    """The environment of a process that runs the code of a source tree."""
    # Safe: otherwise the folder of the command comes before PYTHONPATH.
    return {"PYTHONPATH": str(source), "PYTHONSAFEPATH": "1"}


async def _set(event: asyncio.Event) -> None:
    event.set()


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """A file system of a fixed size in memory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def installation(layout: Layout, source: Path | None = None) -> Iterator[Installation]:
    """An installation whose processes run the code of `source`, or this code."""
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(prefix="tocsin-", dir=memory if memory.is_dir() else None) as folder,
        Background() as background,
    ):
        (Path(folder) / "offset").write_text("+0s\n")
        running = Installation(Path(folder), replace(layout), background)
        if source is not None:
            running.sources = dict.fromkeys(NAMES, source)
            running.first_source = source
        with running.running():
            try:
                yield running
            except BaseException as error:
                error.add_note(running.logs())
                raise


def delivered_events(requests: Receiver) -> dict[str, list[str]]:
    """The idempotency keys of the webhooks that arrived, by the event in their body."""
    keys: dict[str, list[str]] = defaultdict(list)
    for request in requests.requests:
        keys[json.loads(request.body)["event"]].append(request.headers["idempotency-key"])
    return keys
