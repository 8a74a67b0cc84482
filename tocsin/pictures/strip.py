"""The last occurrences of a schedule, one bar each: fired, late, missed, paused, skipped, still to come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.svg import drawing, line, rect

OccurrenceState = Literal["fired", "late", "missed", "cancelled", "paused", "skipped", "due"]
MOST = 60
HEIGHT = 28.0
_PITCH = 9.0
_BAR = 6.0


class StripBar(NamedTuple):
    nominal_at: datetime
    state: OccurrenceState
    reason: str = ""
    """Why it did not fire, or how late it was."""


# Height of the bar, and its class. The outline of a missed one has the whole height.
_BARS: dict[OccurrenceState, tuple[float, str]] = {
    "fired": (1.0, "ok"),
    "late": (0.66, "late"),
    "missed": (1.0, "missed hollow"),
    "cancelled": (0.33, "muted hollow"),
    "paused": (0.33, "muted"),
    "skipped": (0.12, "muted"),
    "due": (0.5, "pending hollow"),
}


def occurrence_strip(occurrences: Sequence[StripBar], zone: ZoneInfo, *, name: str) -> Picture:
    """The newest `MOST` occurrences, oldest first."""
    shown = sorted(occurrences, key=lambda one: one.nominal_at)[-MOST:]
    parts: list[Markup] = []
    for place, one in enumerate(shown):
        parts += _bar(place * _PITCH + 1.5, one, zone)
    counts = {state: sum(one.state == state for one in shown) for state in _BARS}
    summary = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "none yet"
    svg = drawing(
        max(len(shown), 1) * _PITCH + 1, HEIGHT, parts, title=f"occurrences of {name}", description=summary
    )
    rows = [(_when(one, zone), one.state, one.reason) for one in reversed(shown)]
    return Picture("strip", svg, ("nominal time", "state", "reason"), rows)


def _bar(x: float, one: StripBar, zone: ZoneInfo) -> list[Markup]:
    part, kind = _BARS[one.state]
    full = HEIGHT - 4
    height = full * part
    hint = f"{_when(one, zone)}: {one.state}{f', {one.reason}' if one.reason else ''}"
    bar = rect(x, 2 + full - height, _BAR, height, f"pic-bar {kind}", hint, rx=1.5)
    if one.state != "missed":
        return [bar]
    middle = HEIGHT / 2
    return [bar, line(x + 1, middle - 3, x + _BAR - 1, middle + 3, "pic-cross"),
            line(x + 1, middle + 3, x + _BAR - 1, middle - 3, "pic-cross")]  # fmt: skip


def _when(one: StripBar, zone: ZoneInfo) -> str:
    return f"{one.nominal_at.astimezone(zone):%a %Y-%m-%d %H:%M:%S %Z}"
