"""Locks on a data directory.

Guarantee: one launcher at a time holds a data directory, and a launcher that gets it finds no
server of an earlier launcher still running there.

Why this way: two kinds of flock. The launcher's lock closes on exec, so it ends with the launcher.
Each server inherits its own lock, which ends with the last process of that server (including a
backend that outlives a killed postmaster). The kernel tracks both, so no pid has to be trusted. If
everything is killed at once, the launcher's lock ends first, so the next launcher waits for the
second one. NATS does not lock its store, and two servers could open it.

On failure: `Refused`, with the directory and the process that holds it.
"""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tocsin.core.errors import Refused
from tocsin.core.private_files import open_private, refuse_foreign_directory, write_private

LAUNCHER_LOCK = "launcher.lock"
_POLL_S = 0.005
# A launcher killed between fork and exec leaves a child that holds a copy of its lock for a moment.
_ORPHAN_TIMEOUT_S = 5.0


def in_use(data_dir: Path, holder: str) -> Refused:
    who = f"process {holder}" if holder else "another process"
    return Refused(
        f"the data directory '{data_dir}' is in use by {who}", remedy="stop it, or choose another with --data"
    )


@contextlib.contextmanager
def launcher_lock(data_dir: Path) -> Iterator[None]:
    """Hold the directory for this process. Creates it if it does not exist."""
    fd = _open(data_dir)
    try:
        deadline = time.monotonic() + _ORPHAN_TIMEOUT_S
        while not _taken(fd):
            holder = _holder(fd)
            if _exists(holder) or time.monotonic() > deadline:
                raise in_use(data_dir, holder)
            pause()
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        yield
        # The next launcher must not read the pid of an ended process.
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


@contextlib.contextmanager
def server_lock(path: Path, deadline: float) -> Iterator[int]:
    """A descriptor for the server to inherit. Waits until the previous server is gone.

    Our copy closes at the end of the block: from then on the lock lives exactly as long as the
    server.
    """
    fd = open_private(path, os.O_RDWR)
    try:
        while not _taken(fd):
            if time.monotonic() > deadline:
                raise in_use(path.parent, _holder(fd))
            pause()
        yield fd
    finally:
        os.close(fd)


def record_holder(path: Path, pid: int) -> None:
    """Store the pid for error messages. The lock itself does not depend on it."""
    write_private(path, f"{pid}\n".encode("ascii"))


def pause() -> None:
    threading.Event().wait(_POLL_S)


def _open(data_dir: Path) -> int:
    try:
        if not data_dir.is_dir():
            data_dir.parent.mkdir(parents=True, exist_ok=True)
            # As root, Postgres runs as another user, who must be able to enter but not to list.
            data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
        refuse_foreign_directory(data_dir)
        return open_private(data_dir / LAUNCHER_LOCK, os.O_RDWR)
    except OSError as problem:
        raise Refused(
            f"the data directory '{data_dir}' cannot be used ({problem.strerror})",
            remedy="fix it, or choose another with --data",
        ) from None


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _exists(holder: str) -> bool:
    if not holder:
        return False
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _holder(fd: int) -> str:
    text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return text if text.isdigit() else ""
