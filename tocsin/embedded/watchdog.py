"""A process that outlives its launcher just long enough to signal the launcher's child.

Guarantee: when standard input ends, every pid that was written to it (one per line) gets the signal
in the first argument.

Why this way: systems without a parent death signal still close the pipes of a dead process. It runs
as a script with the standard library only, so that it starts quickly and imports nothing of Tocsin.

On failure: a pid that is already gone is not an error.
"""

import contextlib
import os
import sys


def watch() -> None:
    number = int(sys.argv[1])
    pids = [int(line) for line in sys.stdin.buffer if line.strip()]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


if __name__ == "__main__":
    watch()
