"""A child dies with its launcher: by the kernel, and by the watchdog that other systems need."""

import ctypes
import os
import select
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.embedded.launchers import in_a_fork
from tests.wait import eventually_sync
from tocsin.core.errors import Refused
from tocsin.embedded import lifeline
from tocsin.embedded.lifeline import Lifeline, Spawn

_GUARD_S = 20.0


class _Pipe:
    """Ends only when every process that holds its write end has ended."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def next_line(self) -> bytes:
        """One message; empty if all writers have ended."""
        ready, _, _ = select.select([self.read_end], [], [], _GUARD_S)
        assert ready, "the child outlived its launcher"
        return os.read(self.read_end, 100)

    def close_write_end(self) -> None:
        os.close(self.write_end)


def _spawn(pipe: _Pipe, directory: Path) -> subprocess.Popen[bytes]:
    log = os.open(directory / "log", os.O_WRONLY | os.O_CREAT)
    how = Spawn(log, signal.SIGKILL, directory, os.environ, kept_fds=(pipe.write_end,))
    script = f"echo running >/dev/fd/{pipe.write_end}; exec sleep 60"
    return Lifeline().spawn(["/bin/sh", "-c", script], how)


@pytest.mark.parametrize("by_kernel", [True, False], ids=["kernel", "watchdog"])
def test_a_child_dies_with_a_killed_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_kernel: bool
) -> None:
    monkeypatch.setattr(lifeline, "kernel_ties_children", lambda: by_kernel)
    pipe = _Pipe()
    launcher = in_a_fork(lambda: _spawn(pipe, tmp_path).wait())
    pipe.close_write_end()
    assert pipe.next_line() == b"running\n"
    os.kill(launcher, signal.SIGKILL)
    os.waitpid(launcher, 0)
    assert pipe.next_line() == b""


def test_a_child_whose_launcher_died_before_the_request_never_runs(tmp_path: Path) -> None:
    pipe = _Pipe()
    forked = _Pipe()
    real = ctypes.CDLL(None)

    class LateLibrary:
        """Requests the death signal only after the death of the launcher, when it cannot come."""

        def __init__(self, _name: None) -> None:
            self._launcher = os.getpid()

        def prctl(self, *arguments: int) -> int:
            os.write(forked.write_end, b"forked\n")
            eventually_sync(lambda: os.getppid() != self._launcher, "the launcher is killed")
            return int(real.prctl(*arguments))

    def launch() -> None:
        ctypes.CDLL = LateLibrary  # type: ignore[assignment,misc]
        _spawn(pipe, tmp_path)

    launcher = in_a_fork(launch)
    pipe.close_write_end()
    assert forked.next_line() == b"forked\n"
    os.kill(launcher, signal.SIGKILL)
    os.waitpid(launcher, 0)
    assert pipe.next_line() == b""


def test_the_watchdog_spares_a_pid_that_was_reaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifeline, "kernel_ties_children", lambda: False)
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    tied = Lifeline()
    child = tied.spawn(["/bin/true"], Spawn(log, signal.SIGKILL, tmp_path, os.environ))
    os.close(log)
    watchdog = tied._watchdog
    assert watchdog is not None
    assert watchdog.poll() is None
    child.wait()
    tied.cut()
    assert watchdog.returncode == -signal.SIGKILL


def test_a_spawn_from_a_side_thread_is_refused(tmp_path: Path) -> None:
    refusals: list[Refused] = []

    def spawn() -> None:
        with pytest.raises(Refused) as refusal:
            Lifeline().spawn(["/bin/true"], Spawn(1, signal.SIGKILL, tmp_path, os.environ))
        refusals.append(refusal.value)

    side = threading.Thread(target=spawn)
    side.start()
    side.join()
    assert "start it from the main thread" in str(refusals[0])
