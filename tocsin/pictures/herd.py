"""The week ahead: fires per minute, one row per day, with `spread` and without it.

The outline is what would fire without `spread`, the filled area what fires with it. A pixel that stands for
several minutes shows the busiest of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.number_text import value_text
from tocsin.pictures.svg import drawing, element, line, path, text

DAYS = 7
WIDTH = 960.0
_LEFT = 90.0
_RIGHT = WIDTH - 74.0
_TOP = 18.0
_ROW = 44.0
_SLOTS = 288
"""Of a day: five minutes each."""
_NOTABLE = 40


class HerdMinute(NamedTuple):
    at: datetime
    fires: int
    """In this minute, with `spread`."""
    unspread: int
    """Without it."""


class _Slots:
    """The busiest minute of each slot of one day, by the clock of the zone."""

    def __init__(self) -> None:
        self.fires = [0] * _SLOTS
        self.unspread = [0] * _SLOTS

    def add(self, slot: int, minute: HerdMinute) -> None:
        self.fires[slot] = max(self.fires[slot], minute.fires)
        self.unspread[slot] = max(self.unspread[slot], minute.unspread)


def week_ahead(minutes: Iterable[HerdMinute], start: date, zone: ZoneInfo, *, title: str) -> Picture:
    """Seven days from `start`. A minute outside of them is left out."""
    days = [start + timedelta(days=number) for number in range(DAYS)]
    slots = {day: _Slots() for day in days}
    busiest: list[HerdMinute] = []
    for minute in minutes:
        local = minute.at.astimezone(zone)
        if local.date() in slots and minute.fires >= 0 and minute.unspread >= 0:
            slots[local.date()].add((local.hour * 60 + local.minute) * _SLOTS // 1440, minute)
            busiest.append(minute)
    busiest = sorted(busiest, key=lambda one: (-max(one.unspread, one.fires), one.at))[:_NOTABLE]
    peak = max((max(one.fires, one.unspread) for one in busiest), default=0)
    parts = _draw_hours()
    for place, day in enumerate(days):
        top = _TOP + place * _ROW
        parts += _draw_day(day, slots[day], top, max(peak, 1), _note(day, zone))
    svg = drawing(
        WIDTH,
        _TOP + DAYS * _ROW + 4,
        parts,
        title=title,
        description=f"the busiest minute has {peak:,} fires without spread",
    )
    rows = [
        (f"{one.at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}", f"{one.unspread:,}", f"{one.fires:,}")
        for one in busiest
    ]
    legend = (("herd-after", "fires per minute"), ("herd-before", "without spread"))
    return Picture("herd", svg, ("busiest minutes", "without spread", "with spread"), rows, legend)


def _draw_hours() -> list[Markup]:
    parts = []
    for hour in range(0, 25, 3):
        x = _x(hour * _SLOTS / 24)
        parts.append(line(x, _TOP, x, _TOP + DAYS * _ROW, "pic-grid"))
        parts.append(text(x, 11, f"{hour % 24:02d}:00", "pic-tick", anchor="middle"))
    return parts


def _draw_day(day: date, slots: _Slots, top: float, peak: int, note: str) -> list[Markup]:
    bottom = top + _ROW - 6
    most_before, most = max(slots.unspread), max(slots.fires)
    parts = [
        text(0, top + 16, f"{day:%a %d %b}", "pic-label weekend" if day.weekday() > 4 else "pic-label"),
        line(_LEFT, bottom, _RIGHT, bottom, "pic-row"),
        _area(
            slots.unspread, bottom, peak, "herd-before", f"{day:%a %d %b}: at most {most_before:,} a minute"
        ),
        _area(slots.fires, bottom, peak, "herd-after", f"{day:%a %d %b}: at most {most:,} a minute"),
    ]
    shown = value_text(most) if most == most_before else f"{value_text(most_before)} → {value_text(most)}"
    parts.append(text(_RIGHT + 8, bottom - 2, shown if most_before or most else "", "pic-tick", within=66))
    if note:
        parts.append(text(0, top + 30, note, "pic-dst-name", within=_LEFT - 4))
    return parts


def _area(values: list[int], bottom: float, peak: int, kind: str, hint: str) -> Markup:
    points = [(_x(0), bottom)]
    previous = 0
    for slot, value in enumerate([*values, 0]):
        if value != previous:
            points += [(_x(slot), _y(previous, bottom, peak)), (_x(slot), _y(value, bottom, peak))]
            previous = value
    points.append((_x(_SLOTS), bottom))
    return element("path", element("title", hint), d=f"{path(points)} Z", class_=kind)


def _x(slot: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * slot / _SLOTS


def _y(value: int, bottom: float, peak: int) -> float:
    return bottom - (_ROW - 10) * min(value / peak, 1.0)


def _note(day: date, zone: ZoneInfo) -> str:
    """That the clocks change on this day."""
    first = datetime(day.year, day.month, day.day, tzinfo=zone)
    following = day + timedelta(days=1)
    last = datetime(following.year, following.month, following.day, tzinfo=zone)
    before, after = first.utcoffset(), last.utcoffset()
    if before is None or after is None or before == after:
        return ""
    minutes = (after - before) // timedelta(minutes=1)
    return f"clocks {'+' if minutes > 0 else '−'}{abs(minutes) // 60}:{abs(minutes) % 60:02d}"
