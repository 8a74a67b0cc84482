"""Times and durations as people read them, the same on the command line and in the console. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_DAY_S = 86_400


def utc_text(instant: datetime) -> str:
    """`2026-03-08 07:00:00Z`; milliseconds only if there are any."""
    at = instant.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}{_fraction(at)}Z"


def local_text(instant: datetime, tz: str) -> str:
    """`Sun 2026-03-08 03:00:00 EDT`"""
    from timers.recurrence.zones import zone  # loads tzdata, which most commands do not need

    at = instant.astimezone(zone(tz))
    return f"{at:%a %Y-%m-%d %H:%M:%S}{_fraction(at)} {at:%Z}"


def countdown(distance: timedelta) -> str:
    """`in 4m12s`, or `8s ago`, with the two largest units."""
    seconds = int(abs(distance).total_seconds())
    parts = [
        (seconds // _DAY_S, "d"),
        (seconds % _DAY_S // 3600, "h"),
        (seconds % 3600 // 60, "m"),
        (seconds % 60, "s"),
    ]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    text = "".join(f"{amount}{unit}" for amount, unit in parts[:2] if amount) or "0s"
    return f"{text} ago" if distance < timedelta(0) and seconds else f"in {text}"


def due_text(distance: timedelta) -> str:
    """The countdown of something that is pending; `due now` once its time has passed."""
    return countdown(distance) if distance >= timedelta(0) else "due now"


def since_text(then: datetime, now: datetime) -> str:
    """`8s ago`; `just now` also where two clocks disagree and the instant seems to lie ahead."""
    return countdown(then - now) if now - then >= timedelta(seconds=1) else "just now"


def duration_text(duration: timedelta) -> str:
    """`340 ms`, `1.2 s`, `5m10s`"""
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return countdown(duration).removeprefix("in ")


def _fraction(at: datetime) -> str:
    return f".{at.microsecond // 1000:03d}" if at.microsecond >= 1000 else ""
