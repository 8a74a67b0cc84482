"""Ties the life of a child process to the life of this one.

Guarantee: when this process ends, however it ends (kill -9 included), the child gets its death
signal.

Why this way: on Linux the kernel does it (`PR_SET_PDEATHSIG`). The child requests it between fork
and exec, then checks that its parent is still the launcher: a launcher killed before the request
would otherwise leave a child that never gets a signal. The signal follows the thread that forked,
not the process, so only the main thread may spawn. On other systems (macOS) a small watchdog
process reads a pipe that only the launcher holds open; the child writes its own pid into that pipe
before exec, which leaves no gap either.

On failure: an orphaned child exits at once, before exec. A spawn from another thread is rejected.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import Refused

_PR_SET_PDEATHSIG = 1
_ORPHANED = 70


@dataclass(frozen=True, slots=True)
class Spawn:
    """The environment of a child, which is set up before the child runs."""

    log_fd: int
    death_signal: signal.Signals
    directory: Path
    environment: Mapping[str, str]
    kept_fds: tuple[int, ...] = ()
    user: int | None = None
    group: int | None = None


class Lifeline:
    """Spawns one child at a time, tied to this process."""

    def __init__(self) -> None:
        self._watchdog: subprocess.Popen[bytes] | None = None

    def spawn(self, argv: Sequence[str | Path], spawn: Spawn) -> subprocess.Popen[bytes]:
        if threading.current_thread() is not threading.main_thread():
            raise Refused(
                "an embedded server was started from another thread", remedy="start it from the main thread"
            )
        tie = (_tie_by_kernel if kernel_ties_children() else self._tie_by_watchdog)(int(spawn.death_signal))
        with warnings.catch_warnings():
            # Newer Python versions warn about any fork in a process with threads; `tie` takes no
            # lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=spawn.log_fd,
                stderr=spawn.log_fd,
                cwd=spawn.directory,
                env=dict(spawn.environment),
                pass_fds=spawn.kept_fds,
                # A Ctrl-C in the terminal is for the launcher, which stops the servers last.
                start_new_session=True,
                user=spawn.user,
                group=spawn.group,
                extra_groups=None if spawn.user is None else [],
                # Runs after the change of user, which would clear the death signal.
                preexec_fn=tie,
            )

    def cut(self) -> None:
        """End the watchdog.

        Called once the child is reaped: its pid may soon belong to another process.
        """
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.kill()
            watchdog.wait()
            if watchdog.stdin is not None:
                watchdog.stdin.close()

    def _tie_by_watchdog(self, death_signal: int) -> Callable[[], None]:
        self.cut()
        script = Path(__file__).with_name("watchdog.py")
        self._watchdog = watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(death_signal)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert watchdog.stdin is not None
        launcher, pipe = os.getpid(), watchdog.stdin.fileno()

        def tie() -> None:
            os.write(pipe, b"%d\n" % os.getpid())
            if os.getppid() != launcher:
                os._exit(_ORPHANED)

        return tie


def _tie_by_kernel(death_signal: int) -> Callable[[], None]:
    prctl = ctypes.CDLL(None).prctl
    launcher = os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != launcher:
            os._exit(_ORPHANED)

    return tie


def kernel_ties_children() -> bool:
    return sys.platform == "linux"


def signal_quietly(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
