"""The common part of the two embedded servers: start, watch, stop, kill, and report a failed start.

Guarantee: a server is ready when `start` returns. No wait is longer than its limit. A stopped
server can be started again on the same data and the same address.

Why this way: the process is our direct child, so `poll` is exact and nothing is guessed from pid
files. A stop is first a request and then a wait, so that several servers stop at the same time.

On failure: `Unreachable`, with the last lines of the log of the server and the path of that log.
"""

import abc
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tocsin.core.errors import Refused, Unreachable
from tocsin.core.private_files import open_private
from tocsin.embedded.lifeline import Lifeline, Spawn, signal_quietly
from tocsin.embedded.locks import record_holder, server_lock

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
_KILL_TIMEOUT_S = 30.0
_TAIL_LINES = 12
_LOG_BYTES_KEPT = 8_000_000
_KEPT_VARIABLES = ("PATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME")


class EmbeddedServer(abc.ABC):
    """One server process on one data directory; `start` and `stop` may alternate."""

    name: str
    stop_signal: signal.Signals

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.log_path = data_dir / f"{self.name}.log"
        self._lock_path = data_dir / f"{self.name}.lock"
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = Lifeline()

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """The address for clients; the same after every restart."""

    @abc.abstractmethod
    def _start(self, lock_fd: int, deadline: float) -> None: ...

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None or not self.alive:
            raise Refused(f"{self.name} is not running", remedy="start it first")
        return self._process.pid

    def start(self) -> None:
        if self.alive:
            return
        self._forget_process()
        deadline = time.monotonic() + START_TIMEOUT_S
        try:
            with server_lock(self._lock_path, deadline) as lock_fd:
                self._start(lock_fd, deadline)
        except (OSError, subprocess.SubprocessError) as problem:
            self.kill()
            raise Unreachable(
                f"{self.name} could not be started in '{self.data_dir}' ({problem})"
            ) from problem
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        self.request_stop()
        self.finish_stop()

    def request_stop(self) -> None:
        if self._process is not None and self.alive:
            signal_quietly(self._process, self.stop_signal)
            # In a frozen process the request would stay pending.
            signal_quietly(self._process, signal.SIGCONT)

    def finish_stop(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self._forget_process()

    def kill(self) -> None:
        """Send SIGKILL, as in a crash: what was not durable is lost."""
        if self._process is not None:
            signal_quietly(self._process, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_TIMEOUT_S)
            self._forget_process()

    def close(self) -> None:
        """Remove what only this launcher needed. Called once, after the last stop."""
        self.kill()

    def _forget_process(self) -> None:
        self._process = None
        self._lifeline.cut()

    def _spawn(
        self,
        argv: Sequence[str | Path],
        lock_fd: int,
        *,
        death_signal: signal.Signals,
        user: int | None = None,
        group: int | None = None,
    ) -> None:
        with self._open_log() as log_fd:
            spawn = Spawn(
                log_fd=log_fd,
                death_signal=death_signal,
                directory=self.data_dir,
                environment=_environment(),
                kept_fds=(lock_fd,),
                user=user,
                group=group,
            )
            self._process = self._lifeline.spawn(argv, spawn)
        record_holder(self._lock_path, self._process.pid)

    @contextlib.contextmanager
    def _open_log(self) -> Iterator[int]:
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_BYTES_KEPT:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        fd = open_private(self.log_path, os.O_WRONLY | os.O_APPEND)
        try:
            self._log_start = os.fstat(fd).st_size
            yield fd
        finally:
            os.close(fd)

    def _log_since_start(self) -> str:
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")

    def _failed(self, what: str) -> Unreachable:
        code = None if self._process is None else self._process.poll()
        how = "" if code is None else f" (exit code {code})"
        lines = self._log_since_start().strip().splitlines()[-_TAIL_LINES:]
        tail = "\n".join(f"    {line}" for line in lines) or "    (it is empty)"
        return Unreachable(f"{self.name} {what}{how}; its log '{self.log_path}' ends with:\n{tail}")


def _environment() -> dict[str, str]:
    """The few variables that a server needs, and a locale that always exists.

    Nothing else of our environment: as root, Postgres runs as another user, whose processes can read
    the environment of each other.
    """
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return environment | {"LC_ALL": "C"}
