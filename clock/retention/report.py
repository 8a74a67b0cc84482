"""The stored report of the last prune, or of the running one. `tocsin doctor` shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tocsin.core.db import Connection, fetch_one


class PruneReport(NamedTuple):
    began_at: datetime | None
    """None if there was no run yet."""
    ended_at: datetime | None
    """None if the run is `running`, or was interrupted."""
    removed: Mapping[str, int]
    left: Sequence[Mapping[str, str]]
    """Tables that could be removed and were not: `what` and `why`."""
    now: datetime
    running: bool


async def read_prune_report(connection: Connection) -> PruneReport:
    row = await fetch_one(connection, "clock.retention/read_report")
    assert row is not None
    return PruneReport(*row)
