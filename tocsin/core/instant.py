"""Instants: aware datetimes as text, as whole microseconds, and checked.

Guarantee: `instant_of(microseconds_of(x)) == x` and `parse_instant(instant_text(x)) == x` for every
aware instant.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tocsin.core.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def microseconds_of(instant: datetime) -> int:
    """Whole microseconds since 1970."""
    return (instant - EPOCH) // MICROSECOND


def instant_of(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


@lru_cache(maxsize=4096)
def instant_text(instant: datetime) -> str:
    """`2026-03-10T14:00:00Z`, with microseconds if there are any.

    Cached: records of one commit share an instant.
    """
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_instant(text: str) -> datetime:
    """An instant in UTC from a text that Tocsin, Postgres or NATS wrote.

    Nanoseconds are cut to microseconds.
    """
    return datetime.fromisoformat(text).astimezone(UTC)


def utc_text(instant: datetime) -> str:
    """`2026-03-10 14:00:00 UTC`, to the second, for people."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def check_aware(instant: datetime, name: str) -> None:
    if instant.tzinfo is None:
        raise InvalidInput(f"{name} {instant.isoformat()} has no timezone", remedy="give an aware datetime")
