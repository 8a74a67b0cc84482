"""Lanes over time: one row per alarm, schedule or system, with its spans and marks.

Spans shorter than a pixel are drawn together with their neighbours, as the worst of them. A lane that is
not shown is counted below the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal, NamedTuple

from markupsafe import Markup

from schemas.values.duration import format_duration
from tocsin.pictures.figure import Picture
from tocsin.pictures.number_text import whole_seconds
from tocsin.pictures.svg import drawing, element, line, rect, text
from tocsin.pictures.time_axis import TimeAxis, TimeView
from tocsin.pictures.tones import Tone, worst

MOST_LANES = 60
MOST_SPANS = 240
"""In one lane: a span for every third pixel."""
_MOST_OF_ALL = 4_000
"""Spans of all lanes: with many lanes each has fewer, and at least `_FEWEST`."""
_FEWEST = 60
MOST_MARKS = 60
WIDTH = 960.0
_LABELS = 200.0
_ROW = 26.0
_TOP = 6.0
_AXIS = 22.0


class Span(NamedTuple):
    start: datetime
    end: datetime
    tone: Tone
    name: str = ""
    """What it is, such as `open, high`."""
    is_open: bool = False
    """Whether it goes on after the end."""


class LaneMark(NamedTuple):
    at: datetime
    name: str
    shape: Literal["tick", "diamond"] = "tick"


@dataclass(frozen=True)
class PictureLane:
    label: str
    spans: Sequence[Span] = ()
    marks: Sequence[LaneMark] = ()
    href: str | None = None


def lanes_picture(
    lanes: Sequence[PictureLane],
    view: TimeView,
    *,
    title: str,
    legend: Sequence[tuple[str, str]] = (),
) -> Picture:
    shown = lanes[:MOST_LANES]
    most = min(MOST_SPANS, max(_MOST_OF_ALL // max(len(shown), 1), _FEWEST))
    axis = TimeAxis.of(view, _LABELS, WIDTH - 12)
    bottom = _TOP + _ROW * max(len(shown), 1)
    parts = axis.draw(_TOP, bottom)
    for place, lane in enumerate(shown):
        parts += _draw_lane(lane, axis, _TOP + place * _ROW, most)
    left = len(lanes) - len(shown)
    if not shown:
        parts.append(text(_LABELS + 8, _TOP + _ROW * 0.65, "nothing in this time", "pic-quiet"))
    if left:
        parts.append(text(0, bottom + 14, f"and {left:,} more", "pic-quiet"))
    parts += axis.draw_now(view.now, _TOP, bottom)
    spans = sum(len(lane.spans) for lane in lanes)
    svg = drawing(
        WIDTH,
        bottom + _AXIS,
        parts,
        title=title,
        description=f"{len(lanes)} lanes with {spans} spans, {axis.when(view.start)} to {axis.when(view.end)}",
        has_links=any(lane.href for lane in shown),
    )
    heads = ("lane", "what", "from", "until", "for")
    rows = [row for lane in shown for row in _rows(lane, axis)]
    return Picture("lanes", svg, heads, rows, legend)


def _draw_lane(lane: PictureLane, axis: TimeAxis, top: float, most: int) -> Iterator[Markup]:
    height = _ROW
    middle = top + height / 2
    label = text(0, middle + 4, lane.label, "pic-label", within=axis.left - 12)
    yield element("a", label, href=lane.href) if lane.href else label
    yield line(axis.left, top + height, axis.right, top + height, "pic-row")
    for span in merge_spans(lane.spans, axis, most):
        yield _draw_span(span, axis, top, height)
    for mark in _spaced(lane.marks, axis, min(MOST_MARKS, most // 3)):
        yield _draw_mark(mark, axis, top, height)


def _draw_span(span: Span, axis: TimeAxis, top: float, height: float) -> Markup:
    left = axis.x(span.start)
    width = min(max(axis.x(span.end) - left, 2.0), axis.right - left)
    if width < 2.0:
        left, width = axis.right - 2.0, 2.0
    part = 0.36 if span.tone == "pending" else 0.62
    bar = height * part
    ends = "now, still open" if span.is_open else axis.when(span.end)
    took = format_duration(whole_seconds(span.end - span.start))
    hint = f"{span.name or span.tone}: {axis.when(span.start)} to {ends} ({took})"
    kind = f"pic-span {span.tone}"
    return rect(left, top + (height - bar) / 2, width, bar, kind, hint, rx=3 if width > 6 else 1)


def _draw_mark(mark: LaneMark, axis: TimeAxis, top: float, height: float) -> Markup:
    hint = element("title", f"{mark.name}: {axis.when(mark.at)}")
    x = min(max(axis.x(mark.at), axis.left + 4), axis.right - 4)
    middle = top + height / 2
    if mark.shape == "tick":
        return element("line", hint, x1=x, y1=top + 3, x2=x, y2=top + height - 3, class_="pic-mark")
    points = (
        f"{x:.1f},{middle - 4:.1f} {x + 4:.1f},{middle:.1f} {x:.1f},{middle + 4:.1f} {x - 4:.1f},{middle:.1f}"
    )
    return element("polygon", hint, points=points, class_="pic-mark")


def merge_spans(spans: Sequence[Span], axis: TimeAxis, most: int = MOST_SPANS) -> list[Span]:
    """At most `most` of those that the axis shows: spans that begin in the same part of it become one."""
    seen = sorted(
        (one for one in spans if one.end >= axis.start and one.start <= axis.end), key=lambda one: one[:2]
    )
    if len(seen) <= most:
        return seen
    slot = (axis.right - axis.left) / most

    def place(span: Span) -> int:
        return min(int((axis.x(span.start) - axis.left) / slot), most - 1)

    return [_merged(list(group)) for _, group in groupby(seen, key=place)]


def _merged(spans: list[Span]) -> Span:
    first, *others = spans
    if not others:
        return first
    tone = first.tone
    for other in others:
        tone = worst(tone, other.tone)
    last = max(spans, key=lambda span: span.end)
    return Span(first.start, last.end, tone, f"{len(spans)} spans", last.is_open)


def _spaced(marks: Sequence[LaneMark], axis: TimeAxis, most: int) -> list[LaneMark]:
    """At most `most`, not more than one per five pixels."""
    found: list[LaneMark] = []
    free = axis.left
    for mark in sorted((mark for mark in marks if axis.shows(mark.at)), key=lambda mark: mark.at):
        x = axis.x(mark.at)
        if x >= free:
            found.append(mark)
            free = x + 5
        if len(found) == most:
            break
    return found


def _rows(lane: PictureLane, axis: TimeAxis) -> list[tuple[str, ...]]:
    spans: list[tuple[str, ...]] = [
        (
            lane.label,
            span.name or span.tone,
            axis.when(span.start),
            "" if span.is_open else axis.when(span.end),
            format_duration(whole_seconds(span.end - span.start)),
        )
        for span in lane.spans[:MOST_SPANS]
    ]
    return spans + [(lane.label, mark.name, axis.when(mark.at), "", "") for mark in lane.marks[:MOST_MARKS]]
