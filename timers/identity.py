"""Ids and offsets that are the same in every process, because they are hashes of names.

Guarantee I1 (docs/guarantees.md): one occurrence has one event id, whichever process fires it and
however often it is tried. The same holds for the change of a series to stale or fresh, which the
clock or a worker may record.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime, timedelta
from typing import Literal

from tocsin.core.instant import MICROSECOND

_OCCURRENCES = hashlib.sha1(b"tocsin occurrence ", usedforsecurity=False)
_STALENESS = uuid.UUID("5d3a7c1e-8a64-5b0f-8c57-0f3c2b1d9e42")
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def event_id_text(schedule_id: str, generation: int, identity: str) -> str:
    """The event id of an occurrence: 32 hexadecimal digits, which Postgres and `uuid.UUID` read.

    A version 5 uuid, except that the namespace is a prefix of the hashed text. Text, because a
    batch has thousands.
    """
    hashed = _OCCURRENCES.copy()
    hashed.update(f"{schedule_id}/{generation}/{identity}".encode())
    digits = hashed.hexdigest()
    return f"{digits[:12]}5{digits[13:16]}{_VARIANT[digits[16]]}{digits[17:32]}"


def staleness_id(kind: Literal["stale", "fresh"], owner: str, key: str, at: datetime) -> uuid.UUID:
    """The id of the calculated datapoint of a series that became `stale` or `fresh`."""
    return uuid.uuid5(_STALENESS, f"{kind}/{owner}\0{key}/{at.astimezone(UTC).isoformat()}")


def spread_of(owner: str, name: str, spread: timedelta) -> timedelta:
    """A share of `spread` that depends on the schedule's name alone.

    A thousand schedules at :00 do not fire together, and a restart does not move them.
    """
    if not spread:
        return spread
    digest = hashlib.sha256(f"{owner}\0{name}".encode()).digest()
    share = int.from_bytes(digest[:8]) / 2**64
    return timedelta(microseconds=int(spread / MICROSECOND * share))
