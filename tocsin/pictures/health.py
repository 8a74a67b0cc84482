"""The health of systems over time, one bar per part of the time: green, degraded, failed, unknown.

A bar has the worst health of its part, and its height shows how much of it was healthy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.lanes import Span
from tocsin.pictures.svg import drawing, element, rect, text
from tocsin.pictures.time_axis import TimeAxis, TimeView
from tocsin.pictures.tones import Tone, worst

BARS = 90
MOST_SYSTEMS = 40
WIDTH = 960.0
_LABELS = 200.0
_SHARE = 60.0
_ROW = 34.0


@dataclass(frozen=True)
class SystemHealth:
    name: str
    spans: Sequence[Span]
    """Of tone `ok` where it is healthy. A time without a span is unknown."""
    depth: int = 0
    """Below how many other systems it is."""
    href: str | None = None


class _Bar:
    def __init__(self) -> None:
        self.tone: Tone = "ok"
        self.known = timedelta()
        self.healthy = timedelta()
        self.names: list[str] = []


def health_strip(systems: Sequence[SystemHealth], view: TimeView, *, title: str) -> Picture:
    shown = systems[:MOST_SYSTEMS]
    axis = TimeAxis.of(view, _LABELS, WIDTH - _SHARE)
    bottom = 4 + _ROW * max(len(shown), 1)
    parts: list[Markup] = []
    rows: list[tuple[str, ...]] = []
    for place, system in enumerate(shown):
        bars = _bars(system.spans, axis)
        parts += _draw_system(system, bars, axis, 4 + place * _ROW)
        rows += [(system.name, span.name or span.tone, axis.when(span.start), axis.when(span.end)) for span in
                 system.spans[:BARS]]  # fmt: skip
    parts += [
        text(tick.x, bottom + 12, tick.label, "pic-tick", anchor="middle")
        for tick in axis.ticks()
        if axis.left + 16 <= tick.x <= axis.right - 16
    ]
    described = f"{len(systems)} systems, {axis.when(view.start)} to {axis.when(view.end)}"
    svg = drawing(
        WIDTH,
        bottom + 18,
        parts,
        title=title,
        description=described,
        has_links=any(one.href for one in shown),
    )
    return Picture(
        "health", svg, ("system", "health", "from", "until"), rows, more_rows=len(systems) - len(shown)
    )


def _bars(spans: Sequence[Span], axis: TimeAxis) -> list[_Bar]:
    step = axis.length / BARS
    bars = [_Bar() for _ in range(BARS)]
    for span in spans:
        first = max(int((span.start - axis.start) / step), 0)
        last = min(int((span.end - axis.start) / step), BARS - 1)
        for place in range(first, last + 1):
            begins = axis.start + place * step
            part = min(span.end, begins + step) - max(span.start, begins)
            if part <= timedelta():
                continue
            bar = bars[place]
            bar.tone = worst(bar.tone, span.tone) if bar.known else span.tone
            bar.known += part
            bar.healthy += part if span.tone == "ok" else timedelta()
            if span.tone != "ok" and len(bar.names) < 3:
                bar.names.append(span.name or span.tone)
    return bars


def _draw_system(system: SystemHealth, bars: list[_Bar], axis: TimeAxis, top: float) -> list[Markup]:
    indent = min(system.depth, 6) * 12.0
    label = text(indent, top + _ROW / 2 + 3, system.name, "pic-label", within=_LABELS - 12 - indent)
    parts = [element("a", label, href=system.href) if system.href else label]
    width = (axis.right - axis.left) / BARS
    starts = [axis.start + place * axis.length / BARS for place in range(BARS + 1)]
    for place, (bar, (begins, ends)) in enumerate(zip(bars, pairwise(starts), strict=True)):
        x = axis.left + place * width
        when = f"{axis.when(begins)} to {axis.when(ends)}"
        if not bar.known:
            parts.append(
                rect(x, top + _ROW / 2 - 1.5, width - 2, 3, "pic-bar unknown", f"{when}: unknown", rx=1)
            )
            continue
        share = bar.healthy / bar.known
        height = (_ROW - 10) * (1.0 if bar.tone == "ok" else 0.4 + 0.5 * share)
        hint = f"{when}: {', '.join(dict.fromkeys(bar.names)) or 'healthy'}"
        parts.append(rect(x, top + 5 + (_ROW - 10) - height, width - 2, height, f"pic-bar {bar.tone}", hint))
    known = sum((bar.known for bar in bars), timedelta())
    healthy = sum((bar.healthy for bar in bars), timedelta())
    share_text = f"{100 * (healthy / known):.4g}%" if known else ""
    parts.append(text(WIDTH, top + _ROW / 2 + 4, share_text, "pic-tick", anchor="end"))
    return parts
