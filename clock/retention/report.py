"""The last run of retention, or the one under way, as it wrote it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tocsin.core.db import Connection, fetch_one


class PruneReport(NamedTuple):
    began_at: datetime | None
    """None: there was none yet."""
    ended_at: datetime | None
    """None: it is `under_way`, or was interrupted."""
    removed: Mapping[str, int]
    left: Sequence[Mapping[str, str]]
    """What was allowed to go and stayed: `what` and `why`."""
    now: datetime
    under_way: bool


async def read_prune_report(connection: Connection) -> PruneReport:
    row = await fetch_one(connection, "clock.retention/read_report")
    assert row is not None
    return PruneReport(*row)
