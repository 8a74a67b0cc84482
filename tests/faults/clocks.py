"""Clock processes that can be started, trapped inside their transactions, frozen, continued and killed.

Guarantee: every wait is for a visible state (a file, a log line, the state of a process, the epoch in
Postgres). Its bound only ends a broken run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

from tests.faults.traps import VARIABLE
from tests.wait import eventually_sync
from tocsin.core.settings import Settings

WITHIN_S = 240.0
_REJECTIONS = ("clock deposed", "service waits")


class ClockProcess:
    MODULE = "tests.faults.clock_process"

    def __init__(self, settings: Settings, traps: Path, log: Path) -> None:
        values = settings.model_dump(
            include={"postgres", "nats", "namespace", "lease_ttl_s", "log_format", "fire_batch"}
        )
        environment = {f"TOCSIN_{name.upper()}": str(value) for name, value in values.items()}
        self._log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.MODULE],
                env={**os.environ, **environment, VARIABLE: str(traps)},
                stderr=stderr,
            )
        self.pid = self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def lines(self) -> list[dict[str, Any]]:
        """The lines of its log, without a last line that is not complete yet."""
        text = self._log.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [json.loads(line) for line in whole if line.startswith("{")]

    @property
    def epoch(self) -> int:
        """The epoch of its latest term; 0 before the first."""
        return max((line["epoch"] for line in self.lines() if line["event"] == "clock leads"), default=0)

    def is_rejected_since_trapped(self) -> bool:
        """Whether it continued after its last trap, and its transaction was rejected."""
        events = [line["event"] for line in self.lines()]
        last = len(events) - events[::-1].index("trapped")
        return any(event in _REJECTIONS for event in events[last:])

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_until_frozen()

    def wait_until_frozen(self) -> None:
        how = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        eventually_sync(
            lambda: os.waitid(os.P_PID, self.pid, how) is not None, f"clock {self.pid} is frozen", WITHIN_S
        )

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(WITHIN_S)

    def wait_until_dead(self) -> None:
        self._process.wait(WITHIN_S)


class Clocks:
    """A fixed number of processes. A process that dies is replaced."""

    PROCESS: type[ClockProcess] = ClockProcess

    def __init__(self, settings: Settings, folder: Path, count: int) -> None:
        self._settings = settings
        self._folder = folder
        self._traps = folder / "traps"
        self._traps.mkdir(parents=True)
        self._started = 0
        self._database: psycopg.Connection[Any] | None = None
        self.processes = [self._start() for _ in range(count)]

    def _start(self) -> ClockProcess:
        self._started += 1
        return self.PROCESS(self._settings, self._traps, self._folder / f"clock-{self._started}.log")

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        if self._database is not None:
            self._database.close()

    def log_ends(self) -> str:
        """The end of every log, for a run that failed."""
        logs = sorted(self._folder.glob("clock-*.log"))
        return "\n".join(f"{log.name}: {log.read_text(encoding='utf-8')[-800:]}" for log in logs)

    def replace(self, dead: ClockProcess) -> None:
        dead.kill()
        self.processes = [process if process is not dead else self._start() for process in self.processes]

    def trap(self, point: str, action: str) -> ClockProcess:
        """Set a trap and wait until the leader is in it."""
        (self._traps / "draft").write_text(action, encoding="ascii")
        (self._traps / "draft").rename(self._traps / point)
        eventually_sync(lambda: bool(self._taken(point)), f"a clock is trapped at {point!r}", WITHIN_S)
        pid = int(self._taken(point)[0].name.rpartition("-")[2])
        (trapped,) = (process for process in self.processes if process.pid == pid)
        if action != "hold":
            self.open_traps()
        return trapped

    def open_traps(self) -> None:
        for taken in self._traps.iterdir():
            taken.unlink()

    def _taken(self, point: str) -> list[Path]:
        return list(self._traps.glob(f"{point}-*"))

    def leader(self) -> ClockProcess:
        """The process that Postgres names as the leader, once it has fired in its term."""
        leaders: list[ClockProcess] = []

        def leads() -> bool:
            row = self.try_read("select holder, epoch from tocsin.log_head")
            pid = int((row[0] if row and row[0] else "/0/").split("/")[1])
            leaders[:] = [process for process in self.processes if process.pid == pid and process.is_alive]
            return bool(leaders) and row is not None and self.fired_since(row[1])

        eventually_sync(leads, "a clock leads and fires", WITHIN_S)
        return leaders[0]

    def fired_since(self, epoch: int) -> bool:
        row = self.try_read("select epoch from tocsin.log_commit order by last_seq desc limit 1")
        return row is not None and (row[0] or 0) >= epoch

    def wait_until_another_fires(self, epoch: int) -> None:
        eventually_sync(lambda: self.fired_since(epoch + 1), f"a clock fires after epoch {epoch}", WITHIN_S)

    def read(self, query: str) -> tuple[Any, ...]:
        """Read one row, as soon as Postgres answers."""
        rows: list[tuple[Any, ...]] = []

        def answers() -> bool:
            row = self.try_read(query)
            rows[:] = [] if row is None else [row]
            return row is not None

        eventually_sync(answers, "postgres answers", WITHIN_S)
        return rows[0]

    def try_read(self, query: str) -> tuple[Any, ...] | None:
        """Read one row; None while Postgres is down."""
        try:
            if self._database is None or self._database.closed:
                self._database = psycopg.connect(self._settings.postgres, autocommit=True, connect_timeout=5)
            return self._database.execute(query.encode()).fetchone()
        except psycopg.OperationalError:
            self._database = None
            return None
