"""The command line: one command per module, in the package of its subject.

Guarantees: exit code 0 means done, 1 refused, invalid or a failed check, 2 a wrong command line or
an unreachable server, and 3 that `plan --exit-code` found changes. An error that a person can cause
is a message on stderr, never a traceback. Answers go to stdout; with `--json` as exactly one
document.

Why modules import heavy packages inside functions: `tocsin --help`, completion and a mistyped
option must answer at once, and most commands need neither a database driver nor the expression
engine.
"""

from __future__ import annotations

# Most objects of a command live until its end. Looking for garbage among them took a tenth of `check`.
_ALLOCATIONS_PER_COLLECTION = 50_000


def main() -> None:
    import gc
    import io
    import sys

    from tocsin.cli.app import app

    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names and texts come from users, and not every terminal can show all characters.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="tocsin")


__all__ = ["main"]
