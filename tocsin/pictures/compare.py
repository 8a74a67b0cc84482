"""Alarms then and now: what was recorded above, what other rules would have done below, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.svg import drawing, element, line, rect, text
from tocsin.pictures.time_axis import TimeAxis, TimeView

Change = Literal["gained", "lost", "earlier", "later", "ended otherwise", "same"]
MOST_LANES = 40
MOST_PAIRS = 120
"""In one lane; with many lanes each has fewer."""
_MOST_OF_ALL = 1_600
WIDTH = 960.0
_LABELS = 220.0
_ROW = 40.0
_TOP = 6.0
_BAR = 12.0


class Period(NamedTuple):
    start: datetime
    end: datetime
    value: str = ""
    """The value and the threshold when it began, as text."""


class ComparedAlarm(NamedTuple):
    change: Change
    then: Period | None
    now: Period | None

    @property
    def start(self) -> datetime:
        return min(one.start for one in (self.then, self.now) if one is not None)


@dataclass(frozen=True)
class CompareLane:
    label: str
    alarms: Sequence[ComparedAlarm]


LEGEND = (("then", "then"), ("now", "now"), ("changed hollow", "differs"))


def compare_lanes(lanes: Sequence[CompareLane], view: TimeView, *, title: str) -> Picture:
    shown = lanes[:MOST_LANES]
    axis = TimeAxis.of(view, _LABELS, WIDTH - 12)
    bottom = _TOP + _ROW * max(len(shown), 1)
    parts = axis.draw(_TOP, bottom)
    most = min(MOST_PAIRS, _MOST_OF_ALL // max(len(shown), 1))
    for place, lane in enumerate(shown):
        parts += _draw_lane(lane, axis, _TOP + place * _ROW, most)
    if not shown:
        parts.append(text(_LABELS + 8, _TOP + 24, "no alarm, neither then nor now", "pic-quiet"))
    left = len(lanes) - len(shown)
    if left:
        parts.append(text(0, bottom + 14, f"and {left:,} more", "pic-quiet"))
    changes = sum(alarm.change != "same" for lane in lanes for alarm in lane.alarms)
    svg = drawing(WIDTH, bottom + 22, parts, title=title, description=f"{changes} alarms differ")
    heads = ("alarm", "change", "then from", "until", "now from", "until", "value")
    rows = [row for lane in shown for row in _rows(lane, axis)]
    return Picture("compare", svg, heads, rows, LEGEND, more_rows=left)


def _draw_lane(lane: CompareLane, axis: TimeAxis, top: float, most: int) -> list[Markup]:
    parts = [
        text(0, top + _ROW / 2 + 4, lane.label, "pic-label", within=_LABELS - 48),
        text(_LABELS - 6, top + 15, "then", "pic-tick", anchor="end"),
        text(_LABELS - 6, top + 31, "now", "pic-tick", anchor="end"),
        line(axis.left, top + _ROW, axis.right, top + _ROW, "pic-row"),
    ]
    for alarm in _seen(lane, axis, most):
        parts += _draw_alarm(alarm, axis, top)
    return parts


def _seen(lane: CompareLane, axis: TimeAxis, most: int) -> list[ComparedAlarm]:
    """At most `most`; those that differ first."""
    seen = [one for one in lane.alarms if axis.start <= one.start <= axis.end]
    ranked = sorted(seen, key=lambda one: (one.change == "same", one.start))
    return ranked[:most]


def _draw_alarm(alarm: ComparedAlarm, axis: TimeAxis, top: float) -> list[Markup]:
    parts = []
    boxes = [_box(period, axis) for period in (alarm.then, alarm.now) if period is not None]
    if alarm.change != "same":
        left = min(box[0] for box in boxes)
        right = max(box[0] + box[1] for box in boxes)
        left, right = max(left - 3, axis.left), min(right + 3, axis.right)
        hint = f"{alarm.change}: {axis.when(alarm.start)}"
        parts.append(rect(left, top + 2, right - left, _ROW - 4, "pic-changed", hint, rx=4))
    for period, y, kind in ((alarm.then, top + 6, "then"), (alarm.now, top + 22, "now")):
        if period is not None:
            left, width = _box(period, axis)
            hint = f"{kind}: {axis.when(period.start)} to {axis.when(period.end)} {period.value}".rstrip()
            parts.append(rect(left, y, width, _BAR, f"pic-span {kind}", hint))
    if alarm.change in ("gained", "lost"):
        left, width = boxes[0]
        x = min(max(left + width / 2, axis.left + 4), axis.right - 4)
        y = top + 12 if alarm.change == "gained" else top + 28
        sign = f"M{x - 3:.1f} {y:.1f} H{x + 3:.1f}"
        sign += f" M{x:.1f} {y - 3:.1f} V{y + 3:.1f}" if alarm.change == "gained" else ""
        parts.append(element("path", d=sign, class_="pic-sign-changed"))
    return parts


def _box(period: Period, axis: TimeAxis) -> tuple[float, float]:
    left = min(axis.x(period.start), axis.right - 2)
    return left, min(max(axis.x(period.end) - left, 2.0), axis.right - left)


def _rows(lane: CompareLane, axis: TimeAxis) -> list[tuple[str, ...]]:
    def times(period: Period | None) -> tuple[str, str]:
        return ("", "") if period is None else (axis.when(period.start), axis.when(period.end))

    return [
        (
            lane.label,
            alarm.change,
            *times(alarm.then),
            *times(alarm.now),
            (alarm.now or alarm.then or ("", "", ""))[2],
        )
        for alarm in lane.alarms[:MOST_PAIRS]
    ]
