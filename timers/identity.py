"""Names that two processes derive alike: the event id of an occurrence, and a schedule's spread.

Guarantee (I1): one occurrence has one event id, whoever fires it and however often it is tried. The id is a
version 5 uuid in everything but the way its name is put together.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

from tocsin.core.instant import MICROSECOND

_OCCURRENCES = hashlib.sha1(b"tocsin occurrence ", usedforsecurity=False)
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def event_id_text(schedule_id: str, generation: int, identity: str) -> str:
    """32 hexadecimal digits, which Postgres and `uuid.UUID` read; texts because a batch has thousands."""
    hashed = _OCCURRENCES.copy()
    hashed.update(f"{schedule_id}/{generation}/{identity}".encode())
    digits = hashed.hexdigest()
    return f"{digits[:12]}5{digits[13:16]}{_VARIANT[digits[16]]}{digits[17:32]}"


def spread_of(owner: str, name: str, spread: timedelta) -> timedelta:
    """A stable share of `spread`: a thousand schedules at :00 do not stampede, and a restart does not re-roll."""
    if not spread:
        return spread
    digest = hashlib.sha256(f"{owner}\0{name}".encode()).digest()
    share = int.from_bytes(digest[:8]) / 2**64
    return timedelta(microseconds=int(spread / MICROSECOND * share))
