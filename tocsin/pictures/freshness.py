"""Freshness of series: when datapoints arrived, the times without any, and the deadline of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from schemas.values.duration import format_duration
from tocsin.pictures.figure import Picture
from tocsin.pictures.lanes import Span, merge_spans
from tocsin.pictures.number_text import whole_seconds
from tocsin.pictures.svg import drawing, element, line, rect, text
from tocsin.pictures.time_axis import TimeAxis, TimeView

MOST_SERIES = 60
MOST_TICKS = 240
WIDTH = 960.0
_LABELS = 230.0
_RIGHT = WIDTH - 96.0
_ROW = 28.0
_TOP = 6.0


@dataclass(frozen=True)
class SeriesFreshness:
    name: str
    arrivals: Sequence[datetime]
    stale: Sequence[Span] = ()
    """The times in which it was stale."""
    deadline: datetime | None = None
    """When it becomes stale, or became; None if it has no interval."""
    href: str | None = None


def freshness_strip(
    series: Sequence[SeriesFreshness],
    view: TimeView,
    *,
    title: str,
) -> Picture:
    """`view.end` lies after `view.now`, so that deadlines to come are seen."""
    shown = series[:MOST_SERIES]
    axis = TimeAxis.of(view, _LABELS, _RIGHT)
    now = view.now or view.end
    bottom = _TOP + _ROW * max(len(shown), 1)
    parts = axis.draw(_TOP, bottom)
    for place, one in enumerate(shown):
        parts += _draw_series(one, axis, now, _TOP + place * _ROW)
    parts += axis.draw_now(now, _TOP, bottom)
    left = len(series) - len(shown)
    if left:
        parts.append(text(0, bottom + 14, f"and {left:,} more", "pic-quiet"))
    svg = drawing(
        WIDTH,
        bottom + 22,
        parts,
        title=title,
        description=f"{len(series)} series at {axis.when(now)}",
        has_links=any(one.href for one in shown),
    )
    heads = ("series", "last datapoint", "deadline", "state", "stale")
    rows = [
        (
            one.name,
            axis.when(max(one.arrivals)) if one.arrivals else "none",
            axis.when(one.deadline) if one.deadline else "none",
            _state(one, now)[0],
            "; ".join(f"{axis.when(gap.start)} to {axis.when(gap.end)}" for gap in one.stale[:5]),
        )
        for one in shown
    ]
    return Picture("freshness", svg, heads, rows, more_rows=left)


def _draw_series(one: SeriesFreshness, axis: TimeAxis, now: datetime, top: float) -> list[Markup]:
    middle = top + _ROW / 2
    label = text(0, middle + 4, one.name, "pic-label", within=_LABELS - 12)
    parts = [
        element("a", label, href=one.href) if one.href else label,
        line(axis.left, top + _ROW, axis.right, top + _ROW, "pic-row"),
    ]
    for gap in merge_spans(one.stale, axis):
        left, right = axis.x(gap.start), axis.x(gap.end)
        hint = f"stale: {axis.when(gap.start)} to {axis.when(gap.end)}"
        width = min(max(right - left, 1.0), axis.right - left)
        parts.append(rect(left, top + 5, width, _ROW - 10, "pic-gap", hint))
    ticks = _ticks(one.arrivals, axis)
    if ticks:
        data = " ".join(f"M{x:.1f} {top + 9:.1f} V{top + _ROW - 9:.1f}" for x in ticks)
        parts.append(element("path", d=data, class_="pic-arrivals"))
    state, kind = _state(one, now)
    if one.deadline is not None and axis.shows(one.deadline):
        x = min(max(axis.x(one.deadline), axis.left + 5), axis.right - 5)
        points = f"{x:.1f},{middle:.1f} {x + 5:.1f},{middle - 5:.1f} {x + 5:.1f},{middle + 5:.1f}"
        hint = element("title", f"deadline {axis.when(one.deadline)}")
        if one.deadline > now:
            parts.append(line(axis.x(now), middle, x, middle, "pic-wait"))
        parts.append(element("polygon", hint, points=points, class_=f"pic-deadline {kind}"))
    parts.append(text(WIDTH, middle + 4, state, f"pic-state {kind}", anchor="end", within=WIDTH - _RIGHT - 6))
    return parts


def _state(one: SeriesFreshness, now: datetime) -> tuple[str, str]:
    """The state in words, and its tone."""
    if not one.arrivals:
        return "no data", "unknown"
    if one.deadline is None:
        return "not watched", "muted"
    distance = format_duration(whole_seconds(abs(one.deadline - now)))
    return (f"{distance} left", "ok") if one.deadline > now else (f"stale {distance}", "missed")


def _ticks(arrivals: Sequence[datetime], axis: TimeAxis) -> list[float]:
    """The places of arrivals, not more than one per three pixels."""
    places = sorted({int(axis.x(at) / 3) * 3.0 for at in arrivals if axis.shows(at)})
    return [min(max(place, axis.left), axis.right) for place in places[-MOST_TICKS:]]
