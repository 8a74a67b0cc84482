"""The id of a verdict about a series: the same whoever reaches it, the clock or a worker."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

_VERDICTS = uuid.UUID("5d3a7c1e-8a64-5b0f-8c57-0f3c2b1d9e42")


def verdict_id(verdict: str, owner: str, key: str, at: datetime) -> uuid.UUID:
    return uuid.uuid5(_VERDICTS, f"{verdict}/{owner}\0{key}/{at.astimezone(UTC).isoformat()}")
