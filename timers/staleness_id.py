"""The id of a calculated datapoint about staleness: the clock and a worker compute the same one."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Literal

_NAMESPACE = uuid.UUID("5d3a7c1e-8a64-5b0f-8c57-0f3c2b1d9e42")


def staleness_id(kind: Literal["stale", "fresh"], owner: str, key: str, at: datetime) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, f"{kind}/{owner}\0{key}/{at.astimezone(UTC).isoformat()}")
