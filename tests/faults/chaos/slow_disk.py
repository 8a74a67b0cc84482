"""A slow disk: strace attaches to a server and delays the end of each of its `fsync` and `fdatasync`.

Guarantee: during the block every sync of every process and thread of the server takes longer by the
delay, also of processes that the server starts meanwhile. After the block the server runs at its usual
speed. `delayed_calls` counts the delayed syncs from the output of strace.

Why this way: it needs no block device, and it works for a server whose files are in memory. The server
must sync at all: Postgres with `fsync` on, NATS with `sync_interval: always`.

On failure: `AssertionError` with the message of strace, for example if it may not attach.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.wait import eventually_sync
from tocsin.embedded import Nats

_CALLS = "fsync,fdatasync"
_DELAYED = "(DELAYED)"
_WITHIN_S = 30.0


class SyncingNats(Nats):
    """A server that syncs each message before it acknowledges it."""

    def _write_config(self, port: int) -> None:
        super()._write_config(port)
        text = self._config_path.read_bytes()
        self._config_path.write_bytes(text.replace(b"sync_interval: 1s", b"sync_interval: always"))


def reason_to_skip() -> str:
    if shutil.which("strace") is None or os.geteuid() != 0:
        return "needs strace and root, to delay the syncs of a server"
    return ""


@contextmanager
def slow_disk(server_pid: int, delay_s: float, output: Path) -> Iterator[None]:
    """Delay the syncs of a server; strace writes each of them to `output`."""
    pids = _processes(server_pid)
    command = ["strace", "-f", "-qq", "-o", str(output), "-e", f"trace={_CALLS}", "-e", "signal=none"]
    command += ["-e", f"inject={_CALLS}:delay_exit={round(delay_s * 1e6)}"]
    command += [word for pid in pids for word in ("-p", str(pid))]
    strace = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        eventually_sync(
            lambda: strace.poll() is not None or _is_traced(server_pid), "strace attaches", _WITHIN_S
        )
        assert strace.poll() is None, f"strace does not attach: {strace.communicate()[1]}"
        yield
    finally:
        # strace detaches at this signal. A killed strace would detach as well.
        strace.send_signal(signal.SIGINT)
        strace.communicate(timeout=_WITHIN_S)


def delayed_calls(output: Path) -> int:
    return output.read_text(encoding="utf-8", errors="replace").count(_DELAYED)


def _processes(server_pid: int) -> list[int]:
    """The server and its children."""
    children = Path(f"/proc/{server_pid}/task/{server_pid}/children").read_text(encoding="ascii")
    return [server_pid, *map(int, children.split())]


def _is_traced(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (tracer,) = (line for line in lines if line.startswith("TracerPid:"))
    return tracer.split()[1] != "0"
