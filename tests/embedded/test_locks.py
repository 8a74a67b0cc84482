"""Locks on a data directory, without servers."""

import fcntl
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.embedded.launchers import in_a_fork
from tocsin.core.errors import Refused
from tocsin.embedded import locks
from tocsin.embedded.locks import launcher_lock, record_holder, server_lock


def test_the_lock_of_a_launcher_is_not_inherited(tmp_path: Path) -> None:
    with launcher_lock(tmp_path):
        child = subprocess.Popen(["sleep", "100"], close_fds=False)
    try:
        with launcher_lock(tmp_path):
            assert (tmp_path / locks.LAUNCHER_LOCK).read_text() == f"{os.getpid()}\n"
    finally:
        child.kill()
        child.wait()


def test_a_launcher_waits_for_a_copy_of_the_lock_of_a_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher killed between fork and exec leaves a process with a copy of its lock."""
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    path = tmp_path / locks.LAUNCHER_LOCK
    path.write_text(f"{ended.pid}\n")
    held, hold = os.pipe()
    waited, wait = os.pipe()

    def hold_until_waited_for() -> None:
        fd = os.open(path, os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(hold, b"1")
        os.read(waited, 1)

    copy = in_a_fork(hold_until_waited_for)
    os.read(held, 1)
    pauses: list[int] = []
    monkeypatch.setattr(locks, "pause", lambda: pauses.append(os.write(wait, b"1")))
    monkeypatch.setattr(locks, "_ORPHAN_TIMEOUT_S", 20.0)
    try:
        with launcher_lock(tmp_path):
            assert pauses
            assert path.read_text() == f"{os.getpid()}\n"
    finally:
        os.write(wait, b"1")
        os.waitpid(copy, 0)
    for end in (held, hold, waited, wait):
        os.close(end)


def test_the_lock_of_a_server_lasts_as_long_as_its_last_process(tmp_path: Path) -> None:
    path = tmp_path / "nats.lock"
    with server_lock(path, time.monotonic()) as fd:
        # The first process ends at once and leaves another, as a postmaster leaves backends.
        parent = subprocess.Popen(
            ["/bin/sh", "-c", "sleep 100 >/dev/null & echo $!"], pass_fds=(fd,), stdout=subprocess.PIPE
        )
        output, _ = parent.communicate()
    record_holder(path, parent.pid)
    try:
        with (
            pytest.raises(Refused, match=f"'{tmp_path}' is in use by process {parent.pid}:"),
            server_lock(path, time.monotonic()),
        ):
            pass
    finally:
        os.kill(int(output), 9)
    with server_lock(path, time.monotonic() + 20.0) as fd:
        assert fd > 0


def test_an_unknown_holder_is_still_a_holder(tmp_path: Path) -> None:
    path = tmp_path / "nats.lock"
    with (
        server_lock(path, time.monotonic()),
        pytest.raises(Refused) as refusal,
        server_lock(path, time.monotonic()),
    ):
        pass
    assert "is in use by another process:" in str(refusal.value)
