"""The command line: one command or one small family per file, everything heavy imported inside it.

Guarantees: exit code 0 is done, 1 is refused or invalid, 2 is unreachable or a wrong command line, 3 is what
`plan --exit-code` says when there is something to do; what a person can cause is one line on stderr, never a
traceback; data goes to stdout, with `--json` for machines.

Why lazily: `tocsin --help` and a mistyped option must answer at once, and most commands need neither a
database driver nor the expression engine.
"""

from __future__ import annotations

# Most objects of a command live until its end: looking for garbage among them took a tenth of `check`.
_ALLOCATIONS_PER_COLLECTION = 50_000


def main() -> None:
    import gc
    import io
    import sys

    from tocsin.cli.app import app

    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Owners, keys and texts are anybody's; not every terminal has their letters.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="tocsin")


__all__ = ["main"]
