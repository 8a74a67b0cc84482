"""An axis of time: where an instant is drawn, and the ticks at round times of a zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup

from tocsin.pictures.svg import line, text

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_DAYS = (1, 2, 7, 14)
_LABEL_WIDTH = 62.0


class TimeView(NamedTuple):
    """What a picture shows: from `start` to `end`, in a zone, with a line at `now` if that lies within."""

    start: datetime
    end: datetime
    zone: ZoneInfo
    now: datetime | None = None


class Tick(NamedTuple):
    at: datetime
    x: float
    label: str


@dataclass(frozen=True)
class TimeAxis:
    """From `start` at `left` to `end` at `right`. A time without length counts as a second."""

    start: datetime
    end: datetime
    left: float
    right: float
    zone: ZoneInfo

    @classmethod
    def of(cls, view: TimeView, left: float, right: float) -> TimeAxis:
        return cls(view.start, view.end, left, right, view.zone)

    @cached_property
    def length(self) -> timedelta:
        return max(self.end - self.start, timedelta(seconds=1))

    def x(self, at: datetime) -> float:
        """The place of an instant; one outside is at the nearer end."""
        x = self.left + (at.timestamp() - self._begins) * self._scale
        return min(max(x, self.left), self.right)

    @cached_property
    def _begins(self) -> float:
        return self.start.timestamp()

    @cached_property
    def _scale(self) -> float:
        return (self.right - self.left) / self.length.total_seconds()

    def shows(self, at: datetime) -> bool:
        return self.start <= at <= self.start + self.length

    @property
    def pixel(self) -> timedelta:
        return self.length / max(self.right - self.left, 1.0)

    def ticks(self) -> list[Tick]:
        """At most one per `_LABEL_WIDTH`, at round times of the zone, whatever its offset does."""
        most = max(int((self.right - self.left) / _LABEL_WIDTH), 1)
        return [Tick(at, self.x(at), label) for at, label in self._round_times(most)][: most + 1]

    def _round_times(self, most: int) -> list[tuple[datetime, str]]:
        for minutes in _MINUTES:
            if self.length / (minutes * _MINUTE) <= most:
                return list(self._times_of_day(minutes))
        for days in _DAYS:
            if self.length / (days * _DAY) <= most:
                return list(self._days(days))
        return list(self._months(most))

    def _times_of_day(self, minutes: int) -> Iterator[tuple[datetime, str]]:
        step = min(minutes, 15)
        at = self.start.replace(minute=self.start.minute // step * step, second=0, microsecond=0)
        while at <= self.end:
            local = at.astimezone(self.zone)
            if at >= self.start and (local.hour * 60 + local.minute) % minutes == 0:
                yield at, f"{local:%a %d}" if local.hour == local.minute == 0 else f"{local:%H:%M}"
            at += step * _MINUTE

    def _days(self, days: int) -> Iterator[tuple[datetime, str]]:
        day = self.start.astimezone(self.zone).date()
        last = self.end.astimezone(self.zone).date()
        while day <= last:
            at = self._midnight(day)
            if at >= self.start and at <= self.end and day.toordinal() % days == (1 if days == 7 else 0):
                yield at, f"{day:%d %b}" if days > 1 else f"{day:%a %d}"
            if day == date.max:
                return
            day += _DAY

    def _months(self, most: int) -> Iterator[tuple[datetime, str]]:
        local = self.start.astimezone(self.zone)
        months = self.length / timedelta(days=28)
        step = next(
            (one for one in (1, 2, 3, 6, 12) if months / one <= most), 12 * int(months / 12 / most + 1)
        )
        for index in range(local.year * 12 + local.month - 1, 9999 * 12):
            if index % step:
                continue
            day = date(index // 12, index % 12 + 1, 1)
            at = self._midnight(day)
            if at > self.end:
                return
            if at >= self.start:
                yield at, f"{day:%b}" if day.month > 1 and step < 12 else f"{day:%Y}"

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone).astimezone(UTC)

    def draw(self, top: float, bottom: float) -> list[Markup]:
        """Lines from top to bottom, with labels below; the name of the zone is at the right."""
        parts = []
        for tick in self.ticks():
            parts.append(line(tick.x, top, tick.x, bottom, "pic-grid"))
            half = len(tick.label) * 3.2
            if self.left <= tick.x - half and tick.x + half <= self.right:
                parts.append(text(tick.x, bottom + 14, tick.label, "pic-tick", anchor="middle"))
        return parts

    def draw_now(self, now: datetime | None, top: float, bottom: float) -> list[Markup]:
        if now is None or not self.shows(now):
            return []
        return [line(self.x(now), top, self.x(now), bottom, "pic-now")]

    def when(self, at: datetime) -> str:
        """An instant in the zone, for hints and tables."""
        return f"{at.astimezone(self.zone):%a %Y-%m-%d %H:%M:%S %Z}"
