"""Instants and durations as text in explanations. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from timers.recurrence.zones import zone

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)


def when(instant: datetime, tz: str = "UTC") -> str:
    """`2026-03-08 03:00:00 EDT (07:00:00 UTC)`, with the date in UTC only if it differs."""
    utc = instant.astimezone(UTC)
    if tz == "UTC":
        return f"{utc:%Y-%m-%d %H:%M:%S}{_fraction(utc)} UTC"
    local = instant.astimezone(zone(tz))
    date = "" if local.date() == utc.date() else f"{utc:%Y-%m-%d} "
    fraction = _fraction(utc)
    return f"{local:%Y-%m-%d %H:%M:%S}{fraction} {local:%Z} ({date}{utc:%H:%M:%S}{fraction} UTC)"


def length(duration: timedelta) -> str:
    """`3 ms` below a second, then `2m13s`: to the second is enough for longer durations."""
    duration = max(duration, timedelta(0))
    if duration < _SECOND:
        return f"{duration // _MILLISECOND} ms"
    seconds = duration // _SECOND
    text = ""
    for unit, size in _UNITS:
        amount, seconds = divmod(seconds, size)
        text += f"{amount}{unit}" if amount else ""
    return text


def _fraction(at: datetime) -> str:
    return f".{at.microsecond // 1000:03d}" if at.microsecond >= 1000 else ""
