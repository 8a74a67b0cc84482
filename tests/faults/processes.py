"""Services as processes of `tocsin run`. A process that is killed is replaced, as a supervisor does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cli.conftest import environment_of
from tocsin.core.settings import Settings

WITHIN_S = 240.0
TOCSIN = (sys.executable, "-c", "from tests.faults.traps import die_with_the_parent; die_with_the_parent();"
          "from tocsin.cli import main; main()")  # fmt: skip


def environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **{name: value or "" for name, value in environment_of(settings).items()}}


class Processes:
    """Processes by name: a role, and a letter if there are several. `logs` is the folder of their logs."""

    def __init__(self, settings: Settings, names: Sequence[str], logs: Path | None = None) -> None:
        self._logs = logs
        self._environment = environment(settings)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for name in names:
            self._running[name] = self._start(name)

    @property
    def names(self) -> list[str]:
        return list(self._running)

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def kill(self, *names: str) -> list[int]:
        """Kill and replace processes. The exit codes of those that were killed."""
        for name in names:
            self._running[name].kill()
        codes = []
        for name in names:
            codes.append(self._running[name].wait(WITHIN_S))
            self._running[name] = self._start(name)
        return codes

    def restart(self, name: str) -> int:
        """Stop a process as a deployment does, and start it again; the exit code."""
        self._running[name].terminate()
        code = self._running[name].wait(WITHIN_S)
        self._running[name] = self._start(name)
        return code

    def freeze(self, name: str) -> None:
        self._running[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._running[name].send_signal(signal.SIGCONT)

    def ended(self) -> list[str]:
        """The processes that ended without being killed."""
        return [name for name, process in self._running.items() if process.poll() is not None]

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait(WITHIN_S)

    def command(self, name: str) -> list[str]:
        return [*TOCSIN, "run", name.split()[0]]

    def environment(self, name: str) -> dict[str, str]:
        del name
        return self._environment

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        path = Path(os.devnull) if self._logs is None else self._logs / f"{name.replace(' ', '-')}.log"
        with path.open("ab") as log:
            return subprocess.Popen(
                self.command(name), env=self.environment(name), stdout=subprocess.DEVNULL, stderr=log
            )
