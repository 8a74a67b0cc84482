"""Instants of a rule test: durations since its start, or absolute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from schemas.values.duration import format_duration, parse_duration

_SECOND = timedelta(seconds=1)


def absolute_instant(text: str) -> datetime:
    """The schema has checked that the text is an instant."""
    return datetime.fromisoformat(text).astimezone(UTC)


def instant(text: str, start: datetime) -> datetime:
    return absolute_instant(text) if text[4:5] == "-" else start + parse_duration(text)


def since_start(at: datetime, start: datetime) -> str:
    """The time since the start of a test, such as `10m`, `6.449417s` or `1h38m59.366785s`.

    Jitter and spread add microseconds, which a duration in a document cannot have.
    """
    if at < start:
        return at.isoformat()
    elapsed = at - start
    fraction = elapsed % _SECOND
    if fraction % timedelta(milliseconds=1) == timedelta(0):
        return format_duration(elapsed)
    minutes = elapsed - elapsed % timedelta(minutes=1)
    seconds = (elapsed - minutes).total_seconds()
    return f"{format_duration(minutes) if minutes else ''}{seconds:.6f}".rstrip("0") + "s"
