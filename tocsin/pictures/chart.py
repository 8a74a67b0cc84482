"""The value of a series over time, with the lines at which its alarm fires and clears, and the alarm's states.

Many points become the smallest and the largest value of each pixel, so that no peak is lost. A point without
a value ends the line: the series was stale, or it does not go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isfinite
from typing import NamedTuple

from markupsafe import Markup

from tocsin.pictures.figure import MAX_ROWS, Picture
from tocsin.pictures.lanes import Span, merge_spans
from tocsin.pictures.number_text import round_steps, value_text
from tocsin.pictures.svg import drawing, element, line, path, rect, text
from tocsin.pictures.time_axis import TimeAxis, TimeView

WIDTH = 960.0
HEIGHT = 300.0
MOST_LEVELS = 10
_LEFT = 58.0
_RIGHT = WIDTH - 84.0
_TOP = 12.0
_BOTTOM = HEIGHT - 46.0
_LARGEST = 1e15
_STATES = 8.0
"""Height of the strip of states below the values."""


class Point(NamedTuple):
    at: datetime
    value: float | None


class ChartLevel(NamedTuple):
    """A horizontal line: where an alarm fires or clears."""

    value: float
    name: str
    kind: str = "fire"


def value_chart(
    points: Sequence[Point],
    view: TimeView,
    *,
    title: str,
    unit: str = "",
    levels: Sequence[ChartLevel] = (),
    bands: Sequence[Span] = (),
) -> Picture:
    """`bands` are the states of the alarm: pending (the time of `for`), open, acknowledged, resolved."""
    axis = TimeAxis.of(view, _LEFT, _RIGHT)
    shown = [point for point in points if axis.shows(point.at)]
    lines = [level for level in levels if isfinite(level.value) and abs(level.value) <= _LARGEST][
        :MOST_LEVELS
    ]
    scale = _Scale.of([*(_valid(point.value) for point in shown), *(level.value for level in lines)])
    merged = merge_spans(bands, axis)
    parts = [*_draw_bands(merged, axis), *axis.draw(_TOP, _BOTTOM), *_draw_values(scale)]
    parts += _draw_levels(lines, scale)
    parts += _draw_line(shown, axis, scale)
    parts += axis.draw_now(view.now, _TOP, _BOTTOM)
    if not shown:
        parts.append(text(_LEFT + 12, _TOP + 20, "no datapoint in this time", "pic-quiet"))
    parts.append(text(_RIGHT + 6, _TOP + 4, unit, "pic-tick", within=WIDTH - _RIGHT - 6))
    described = f"{len(points)} datapoints, {axis.when(view.start)} to {axis.when(view.end)}"
    svg = drawing(WIDTH, HEIGHT, parts, title=title, description=described)
    rows = [
        (axis.when(point.at), "" if point.value is None else f"{point.value:.12g}")
        for point in shown[-MAX_ROWS:]
    ]
    rows += [
        (axis.when(span.start), f"{span.name or span.tone} until {axis.when(span.end)}") for span in merged
    ]
    return Picture(
        "chart", svg, ("time", f"value {unit}".strip()), rows, more_rows=max(len(shown) - MAX_ROWS, 0)
    )


class _Scale(NamedTuple):
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> _Scale:
        known = [value for value in values if value is not None] or [0.0, 1.0]
        low, high = min(known), max(known)
        margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
        return cls(low - margin, high + margin)

    def y(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return _BOTTOM - (_BOTTOM - _TOP) * min(max(part, 0.0), 1.0)


def _valid(value: float | None) -> float | None:
    """A value that can be drawn; others end the line."""
    return value if value is not None and isfinite(value) and abs(value) <= _LARGEST else None


def _draw_bands(bands: Sequence[Span], axis: TimeAxis) -> list[Markup]:
    parts = []
    for band in bands:
        left = axis.x(band.start)
        width = max(axis.x(band.end) - left, 0.5)
        left = min(left, axis.right - width)
        hint = f"{band.name or band.tone}: {axis.when(band.start)} to {axis.when(band.end)}"
        parts.append(rect(left, _TOP, width, _BOTTOM - _TOP, f"pic-band {band.tone}", hint, rx=None))
        parts.append(rect(left, _BOTTOM + 20, width, _STATES, f"pic-span {band.tone}", hint, rx=1))
    if bands:
        parts.append(text(_RIGHT + 6, _BOTTOM + 20 + _STATES, "alarm", "pic-tick"))
    return parts


def _draw_values(scale: _Scale) -> list[Markup]:
    parts = []
    for value in round_steps(scale.low, scale.high, 6):
        y = scale.y(value)
        parts.append(line(_LEFT, y, _RIGHT, y, "pic-grid"))
        parts.append(text(_LEFT - 6, y + 4, value_text(value), "pic-tick", anchor="end", within=_LEFT - 6))
    return parts


def _draw_levels(levels: Sequence[ChartLevel], scale: _Scale) -> list[Markup]:
    """Each line with its name at the right; names that would overlap move apart."""
    parts = []
    free = _TOP
    for level in sorted(levels, key=lambda level: -level.value):
        y = scale.y(level.value)
        parts.append(line(_LEFT, y, _RIGHT, y, f"pic-level {level.kind}"))
        if y + 4 >= free and (written := max(y + 4, free)) <= _BOTTOM + 4:
            parts.append(text(_RIGHT + 6, written, level.name, f"pic-level-name {level.kind}", within=78))
            free = written + 13
    return parts


def _draw_line(points: Sequence[Point], axis: TimeAxis, scale: _Scale) -> list[Markup]:
    data = " ".join(
        path([(axis.x(point.at), scale.y(point.value or 0.0)) for point in run])
        for run in _runs(extremes(points, axis))
    )
    alone = [run[0] for run in _runs(extremes(points, axis)) if len(run) == 1]
    dots = [
        element("circle", cx=axis.x(point.at), cy=scale.y(point.value or 0.0), r=1.8, class_="pic-dot")
        for point in alone[:200]
    ]
    return ([element("path", d=data, class_="pic-line")] if data else []) + dots


def extremes(points: Sequence[Point], axis: TimeAxis) -> list[Point]:
    """At most four points per pixel: the first gap, the smallest, the largest and the last of each."""
    by_pixel: dict[int, list[Point]] = {}
    for point in sorted(points, key=_in_order):
        by_pixel.setdefault(int(axis.x(point.at)), []).append(Point(point.at, _valid(point.value)))
    kept: list[Point] = []
    for group in by_pixel.values():
        known = [point for point in group if point.value is not None]
        gap = [point for point in group if point.value is None][:1]
        chosen = gap + known if len(known) <= 3 else [*gap, *_bounds(known), known[-1]]
        kept += sorted(dict.fromkeys(chosen), key=_in_order)
    return kept


def _in_order(point: Point) -> tuple[datetime, bool]:
    """A gap that begins at a datapoint comes after it."""
    return point.at, point.value is None


def _bounds(known: list[Point]) -> list[Point]:
    return [
        min(known, key=lambda point: point.value or 0.0),
        max(known, key=lambda point: point.value or 0.0),
    ]


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """The points between gaps."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.value is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]
