"""Real releases of the tz database, applied one after the other to schedules in every state.

Each step takes the zones whose clocks the new release changed, and runs schedules from before the
first changed day until after it. The new release comes in time, or late.
"""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.timers.simulated_schedule import SimulatedSchedule
from tests.timers.tz_releases import WHEELS, TzRelease, fetch_release, using
from timers.identity import event_id_text

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
RECURRENCES: tuple[dict[str, Any], ...] = (
    {"cron": "0 9 * * *"},
    {"cron": "15,45 0,1,2,3,8,9,10,22,23 * * *"},
    {"cron": "30 0,1,2,3 * * *", "dst_fold": "both"},
    {"cron": "30 0,1,2,3 * * *", "dst_fold": "second", "dst_gap": "skip"},
    {"rrule": "FREQ=DAILY;BYHOUR=2,9;BYMINUTE=30;BYSECOND=0"},
    {"cron": "*/30 * * * *"},
)
STATES = ("active", "paused", "resumed", "edited", "parked")
DELAYS = (-6 * HOUR, 9 * HOUR + timedelta(minutes=20), 30 * HOUR)


class Case:
    """One schedule in one state, over one new release of its zone."""

    def __init__(self, arguments: dict[str, Any], state: str, changed_at: datetime, delay: timedelta) -> None:
        self.label = (arguments, state, changed_at, delay)
        self.begin, self.end = changed_at - 3 * DAY, changed_at + 4 * DAY
        self.released_at = changed_at + delay
        self.state = state
        self.schedule = SimulatedSchedule(arguments, self.begin)
        self.active: list[tuple[datetime, datetime]] = [(self.begin, self.end)]
        self.before = self._occurrences()

    def run_on_old_data(self) -> None:
        schedule, release = self.schedule, self.released_at
        if self.state in ("paused", "resumed", "edited"):
            schedule.run_until(release - 20 * HOUR)
            changed_at = release - 20 * HOUR
            if self.state == "edited":
                schedule.edit(changed_at)
                self.active = [(self.begin, changed_at), (changed_at, self.end)]
            else:
                schedule.pause(changed_at)
                resumed_at = release - 3 * HOUR if self.state == "resumed" else release + HOUR
                self.active = [(self.begin, changed_at), (resumed_at, self.end)]
                if self.state == "resumed":
                    schedule.edit(resumed_at)
        elif self.state == "parked":
            schedule.run_until(release - 5 * HOUR)
            if schedule.tick is not None:
                schedule.tick.parked = True
        schedule.run_until(release)

    def run_on_new_data(self) -> None:
        schedule = self.schedule
        if self.state != "edited":  # an edited one becomes due before the update has moved it
            schedule.update_tz()
        if self.state == "paused":
            schedule.edit(self.released_at + HOUR)
        elif self.state == "parked":
            schedule.fire_late(self.released_at + HOUR)
        elif self.state == "edited":
            schedule.run_until(self.released_at + 12 * HOUR)
            schedule.update_tz()
        schedule.run_until(self.end)

    def expected(self) -> set[str]:
        """The occurrences whose instant lies in an active time by the old data and by the new."""
        after = self._occurrences()
        return {
            event_id_text("ref", 1, identity)
            for identity, at in after.items()
            if identity in self.before
            for begin, end in self.active
            if begin < min(at, self.before[identity]) and max(at, self.before[identity]) <= end
        }

    def _occurrences(self) -> dict[str, datetime]:
        recurrence = self.schedule.recurrence()
        found = recurrence.occurrences(self.begin - DAY, self.end + DAY, 1000)
        return {recurrence.identity(one): one.at for one in found if one.note is None}


def changed_zones(old: TzRelease, new: TzRelease) -> dict[str, datetime]:
    """Zones whose clocks differ around the release, with the first day that differs.

    One zone for each different change: the others are copies of it.
    """
    year = int(new.version[:4])
    days = [datetime(year, 1, 1, tzinfo=UTC) - 200 * DAY + number * DAY for number in range(800)]
    keys = sorted(key for key in old.keys() & new.keys() if old.file(key) != new.file(key))
    offsets = []
    for release in (old, new):
        with using(release):
            offsets.append({key: [day.astimezone(ZoneInfo(key)).utcoffset() for day in days] for key in keys})
    zones: dict[tuple[Any, ...], tuple[str, datetime]] = {}
    for key in keys:
        before, after = offsets[0][key], offsets[1][key]
        if before != after:
            first = next(day for day, *both in zip(days, before, after, strict=True) if both[0] != both[1])
            zones.setdefault((*before, *after), (key, first))
    return dict(zones.values())


@pytest.mark.parametrize(("older", "newer"), tuple(itertools.pairwise(WHEELS)))
def test_a_new_release_fires_nothing_twice_nothing_retroactively_and_loses_nothing(
    older: str, newer: str
) -> None:
    old, new = (fetch_release(wheel) for wheel in (older, newer))
    zones = changed_zones(old, new)
    with using(old):
        cases = [
            Case({**arguments, "tz": zone}, state, changed_at, delay)
            for zone, changed_at in zones.items()
            for arguments, state, delay in itertools.product(RECURRENCES, STATES, DELAYS)
        ]
        for case in cases:
            case.run_on_old_data()
    with using(new):
        for case in cases:
            case.run_on_new_data()
        for case in cases:
            check(case)


def check(case: Case) -> None:
    fires = case.schedule.fires
    twice = [id for id, times in Counter(fire.id for fire in fires).items() if times > 1]
    assert not twice, (case.label, [fire for fire in fires if fire.id in twice])
    retroactive = [fire for fire in fires if fire.at <= fire.armed_after]
    assert not retroactive, (case.label, retroactive)
    lost = case.expected() - {fire.id for fire in fires}
    assert not lost, (case.label, len(lost))


def test_the_releases_change_zones() -> None:
    """The test above would pass without a word if the releases were all alike."""
    wheels = ("2023.4", "2024.1")
    old, new = (fetch_release(wheel) for wheel in wheels)
    assert "Asia/Almaty" in changed_zones(old, new)
