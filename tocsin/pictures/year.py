"""A year as a calendar of weeks: how much fires on each day, DST changes, holidays, and days with missed fires."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.svg import drawing, element, rect, text

PITCH = 15.0
_CELL = 12.0
_LEFT = 34.0
_TOP = 20.0
WIDTH = _LEFT + 54 * PITCH
HEIGHT = _TOP + 7 * PITCH + 4
_DAY = timedelta(days=1)
_LEVELS = 4


@dataclass(frozen=True)
class YearDay:
    fires: int = 0
    missed: int = 0
    holiday: str = ""
    dst: str = ""
    """What the change of the clocks does on this day, such as `02:30 does not exist, fires at 03:00`."""
    is_skipped: bool = False
    """Whether a calendar leaves the day out."""


def year_calendar(
    year: int, days: Mapping[date, YearDay], *, title: str, today: date | None = None
) -> Picture:
    first = date(year, 1, 1)
    busiest = max((day.fires for at, day in days.items() if at.year == year), default=0)
    parts: list[Markup] = _names(year)
    for number in range(366 if monthrange(year, 2)[1] == 29 else 365):
        at = first + number * _DAY
        parts += _cell(at, days.get(at, YearDay()), busiest, at == today)
    of_year = {at: day for at, day in days.items() if at.year == year}
    total = sum(day.fires for day in of_year.values())
    missed = sum(day.missed for day in of_year.values())
    svg = drawing(
        WIDTH, HEIGHT, parts, title=f"{title}, {year}", description=f"{total:,} fires, {missed:,} missed"
    )
    rows = [
        (f"{at:%a %Y-%m-%d}", f"{day.fires:,}", f"{day.missed:,}" if day.missed else "", _notes(day))
        for at, day in sorted(of_year.items())
    ]
    legend = (
        ("lv1", "few"),
        ("lv4", "many"),
        ("missed hollow", "missed"),
        ("dst", "clocks change"),
        ("holiday", "holiday"),
    )
    return Picture("year", svg, ("day", "fires", "missed", "notes"), rows, legend)


def _place(at: date) -> tuple[float, float]:
    """Left and top of a day: weeks are columns that begin on Monday."""
    start = date(at.year, 1, 1)
    column = (at.timetuple().tm_yday - 1 + start.weekday()) // 7
    return _LEFT + column * PITCH, _TOP + at.weekday() * PITCH


def _names(year: int) -> list[Markup]:
    months = [
        text(_place(date(year, month, 1))[0], 12, f"{date(year, month, 1):%b}", "pic-tick")
        for month in range(1, 13)
    ]
    weekdays = [
        text(0, _TOP + day * PITCH + 10, name, "pic-tick")
        for day, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"))
    ]
    return months + weekdays


def _cell(at: date, day: YearDay, busiest: int, is_today: bool) -> list[Markup]:
    x, y = _place(at)
    kinds = [f"pic-day lv{level(day.fires, busiest)}"]
    kinds += [
        kind
        for kind, is_on in (("holiday", day.holiday), ("skipped", day.is_skipped), ("today", is_today))
        if is_on
    ]
    notes = _notes(day)
    hint = f"{at:%a %d %b %Y}: {day.fires:,} fires"
    hint += f", {day.missed:,} missed" if day.missed else ""
    parts = [rect(x, y, _CELL, _CELL, " ".join(kinds), f"{hint}{f'; {notes}' if notes else ''}")]
    if day.missed:
        parts.append(rect(x + 1, y + 1, _CELL - 2, _CELL - 2, "pic-bar missed hollow"))
    if day.dst:
        points = f"{x:g},{y:g} {x + 7:g},{y:g} {x:g},{y + 7:g}"
        parts.append(element("polygon", points=points, class_="pic-dst"))
    return parts


def level(fires: int, busiest: int) -> int:
    """0 for none, and 1 to 4 by quarters of the busiest day."""
    return 0 if fires <= 0 else min(1 + fires * _LEVELS // (busiest + 1), _LEVELS)


def _notes(day: YearDay) -> str:
    return "; ".join(note for note in (day.dst, day.holiday, "left out" if day.is_skipped else "") if note)
