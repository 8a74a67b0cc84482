"""How a command finds the servers of a `tocsin up` that runs on this machine.

Guarantee: the variables `TOCSIN_POSTGRES` and `TOCSIN_NATS` always win. Without them, the addresses are
those that the running `up` wrote into its data directory, `TOCSIN_DATA` or `.tocsin`; it removes them when it stops.

Why: after `tocsin up` in one terminal, `tocsin upcoming` in another should simply work. On failure: a note
left by a killed `up` names a server that does not answer, and the error says its address.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEFAULT_DATA = Path(".tocsin")
DATA_VARIABLE = "TOCSIN_DATA"
_NOTE = "addresses.json"
_KEYS = ("postgres", "nats")


def read_addresses() -> dict[str, str]:
    """Empty when no `up` runs there; a damaged note counts as none."""
    data_dir = Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)
    try:
        noted = json.loads((data_dir / _NOTE).read_text(encoding="utf-8"))
        return {key: str(noted[key]) for key in _KEYS}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@contextmanager
def noted_addresses(data_dir: Path, postgres: str, nats: str) -> Iterator[None]:
    note = data_dir / _NOTE
    note.write_text(json.dumps({"postgres": postgres, "nats": nats}) + "\n", encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
