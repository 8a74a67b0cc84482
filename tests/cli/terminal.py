"""A terminal of 80 columns for a command: what the command writes, and what is left on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress

TOCSIN = (sys.executable, "-c", "from tocsin.cli import main; main()")
_CONTROL = re.compile(r"\x1b\[(\??\d*(?:;\d+)*)([A-Za-z])|(\r|\n)")


class Terminal:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str | None]) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        given = {**os.environ, **environment, "TERM": "xterm"}
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={name: value for name, value in given.items() if value is not None},
            # Ctrl-C goes to the processes that have this as their controlling terminal.
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._ours = ours
        self.written = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        """End the command, also if the test fails."""
        os.close(self._ours)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def read(self) -> bool:
        """Wait for output; False at its end."""
        try:
            some = os.read(self._ours, 65536)
        except OSError:
            return False
        self.written += some.decode(errors="replace")
        return bool(some)

    def press(self, key: bytes) -> None:
        os.write(self._ours, key)

    def wait(self) -> int:
        while self.read():
            pass
        return self._process.wait(60)

    @property
    def screen(self) -> str:
        """The text that is left on the screen."""
        lines, row, place = [""], 0, 0
        for match in _CONTROL.finditer(self.written):
            lines[row] += self.written[place : match.start()]
            place = match.end()
            count, command, moved = match.groups()
            if moved == "\n":
                row += 1
                lines += [""] * (row >= len(lines))
            elif command == "A":
                row -= int(count or 1)
            elif command == "K":
                lines[row] = ""
        return "\n".join([*lines, self.written[place:]])
