"""Launchers in other processes, and the processes that they leave behind.

A `ScriptLauncher` is a new interpreter that can be killed. `in_a_fork` runs a function in a copy of
this interpreter: a user without access to the files of the interpreter can run it that way.
"""

import contextlib
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

_SCRIPT = """
import sys
from pathlib import Path
from tocsin.embedded import embedded_servers
print("starting", flush=True)
with embedded_servers(Path(sys.argv[1]), durable=False) as servers:
    print(servers.postgres.pid, servers.nats.pid, servers.postgres_url, servers.nats_url, flush=True)
    sys.stdin.read()
"""


class ScriptLauncher:
    """`embedded_servers` in its own process. It stops when its input closes."""

    def __init__(self, data_dir: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self._process.pid
        assert self._line() == ["starting"]

    def wait_until_ready(self) -> tuple[int, int, str, str]:
        postgres_pid, nats_pid, postgres_url, nats_url = self._line()
        return int(postgres_pid), int(nats_pid), postgres_url, nats_url

    def kill_after(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _line(self) -> list[str]:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().split()


@contextlib.contextmanager
def script_launcher(data_dir: Path) -> Iterator[ScriptLauncher]:
    launcher = ScriptLauncher(data_dir)
    try:
        yield launcher
    finally:
        launcher.kill()


def in_a_fork(function: Callable[[], object]) -> int:
    """Run the function in a fork; returns its pid. It exits with 0, or with 1 after an error."""
    # Loaded on demand by the first connection, from a place that another user may not reach.
    "localhost".encode("idna")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        function()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def users_of(data_dir: Path) -> dict[int, str]:
    """Each other process that names the directory, has a file there open, or runs in it."""
    users = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if os.fsencode(data_dir) in _traces(entry):
                    users[int(entry.name)] = (entry / "comm").read_text().strip()
    return users


def _traces(process: Path) -> bytes:
    traces = [(process / "cmdline").read_bytes(), os.fsencode((process / "cwd").readlink())]
    for descriptor in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            traces.append(os.fsencode(descriptor.readlink()))
    return b"\0".join(traces)
