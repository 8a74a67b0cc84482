"""The addresses of the servers of a `tocsin up` on this machine.

Guarantee: the variables `TOCSIN_POSTGRES` and `TOCSIN_NATS` have priority. Without them, commands
and the producer of `tocsin.client` use the addresses that the running `up` wrote to a file in its
data directory, `TOCSIN_DATA` or `.tocsin`. It removes the file when it stops.

Why: after `tocsin up` in one terminal, `tocsin upcoming` works in another without settings. On
failure: the file of an `up` that was killed names servers that do not answer, and the error
contains their address.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.core.settings import Settings

DEFAULT_DATA = Path(".tocsin")
DATA_VARIABLE = "TOCSIN_DATA"
_FILE = "addresses.json"
_KEYS = ("postgres", "nats")


def read_addresses() -> dict[str, str]:
    """The addresses by setting; empty if no `up` runs there, or if the file is damaged."""
    data_dir = Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)
    try:
        addresses = json.loads((data_dir / _FILE).read_text(encoding="utf-8"))
        return {key: str(addresses[key]) for key in _KEYS}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def with_addresses(settings: Settings) -> Settings:
    """The settings; addresses that they do not have come from a running `up`."""
    missing = {key: value for key, value in read_addresses().items() if not getattr(settings, key)}
    return settings.model_copy(update=missing)


@contextmanager
def publish_addresses(data_dir: Path, postgres: str, nats: str) -> Iterator[None]:
    file = data_dir / _FILE
    file.write_text(json.dumps({"postgres": postgres, "nats": nats}) + "\n", encoding="utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
