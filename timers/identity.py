"""Names that two processes derive alike: the event id of an occurrence, and a schedule's spread.

Guarantee (I1): one occurrence has one event id, whoever fires it and however often it is tried.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import timedelta

_OCCURRENCES = uuid.UUID("6f1d2a54-8c1e-5b0c-9a7e-2f4f1f0f7c11")


def event_id(schedule_id: uuid.UUID, generation: int, identity: str) -> uuid.UUID:
    digest = hashlib.sha1(
        _OCCURRENCES.bytes + schedule_id.bytes + f"/{generation}/{identity}".encode(), usedforsecurity=False
    ).digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def spread_of(owner: str, name: str, spread: timedelta) -> timedelta:
    """A stable share of `spread`: a thousand schedules at :00 do not stampede, and a restart does not re-roll."""
    if not spread:
        return spread
    digest = hashlib.sha256(f"{owner}\0{name}".encode()).digest()
    share = int.from_bytes(digest[:8]) / 2**64
    return timedelta(microseconds=int(spread / timedelta(microseconds=1) * share))
