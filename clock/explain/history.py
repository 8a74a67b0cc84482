"""The generations of a schedule, and which of them name an instant that somebody asks about. Pure.

Guarantee: every generation that the audit knows is here, in the order of the acts that made them, and the
current one always. The id of each fire that could have happened at the asked instant follows from them
(`timers.identity`), so that a fire is found by its id, never by guessing from times.

Why a second wide: a person asks for 08:00:00, and a service schedules at an instant with microseconds. An asked
instant without a fraction means the second that begins there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from timers.catch_up import occurrence_at
from timers.identity import event_id_text
from timers.recurrence import Occurrence, Recurrence, parse_spec
from timers.recurrence.recurrence import as_utc
from tocsin.core.errors import TocsinError
from tocsin.core.instant import MICROSECOND, instant_text

Row = Mapping[str, Any]
_SECOND = timedelta(seconds=1)
_BEGINNING = datetime(2, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Version:
    """A schedule as one act left it."""

    generation: int
    at: datetime
    who: str
    via: str
    status: str
    spec: Any

    @cached_property
    def recurrence(self) -> Recurrence | None:
        """None if it cannot be evaluated: that is what a timer is parked for."""
        try:
            return parse_spec(self.spec)
        except (TocsinError, TypeError, ValueError, KeyError, AttributeError):
            return None

    @property
    def tz(self) -> str:
        return self.recurrence.tz if self.recurrence is not None else "UTC"

    @property
    def describe(self) -> str:
        return self.recurrence.describe() if self.recurrence is not None else "a broken recurrence"

    @property
    def is_once(self) -> bool:
        return isinstance(self.spec, dict) and "at" in self.spec

    def named(self, asked: datetime) -> Occurrence | None:
        """The occurrence that the asked instant means."""
        if self.recurrence is None:
            return None
        found = self.recurrence.occurrence_after(asked - MICROSECOND)
        return found if found is not None and found.at <= last_instant(asked) else None

    def event_id(self, schedule_id: object, occurrence: Occurrence) -> str:
        return event_id_text(str(schedule_id), self.generation, self._identity(occurrence))

    def missed_id(self, schedule_id: object, first_at: datetime) -> str:
        first = Occurrence(first_at, None, 0, None)
        if self.recurrence is not None:
            first = occurrence_at(self.recurrence, first_at)
        return event_id_text(str(schedule_id), self.generation, f"missed/{self._identity(first)}")

    def _identity(self, occurrence: Occurrence) -> str:
        if self.recurrence is None:
            return instant_text(occurrence.at)
        return self.recurrence.identity(occurrence)


History = tuple[Version, ...]


def last_instant(asked: datetime) -> datetime:
    return asked if asked.microsecond else asked + _SECOND - MICROSECOND


def history_of(row: Row, acts: Sequence[Row]) -> History:
    versions = [
        Version(
            act["new"]["generation"],
            as_utc(act["at"], "at"),
            act["who"],
            act["via"],
            act["new"]["status"],
            act["new"]["recurrence"],
        )
        for act in acts
        if act["new"] and "recurrence" in act["new"]
    ]
    if not versions or versions[-1].generation != row["generation"]:
        # Somebody changed the row by hand, or the audit was shortened: what stands is still known.
        at = as_utc(row["updated_at" if versions else "created_at"], "at")
        versions.append(
            Version(
                row["generation"],
                at,
                row["created_by"],
                row["created_via"],
                row["status"],
                row["recurrence"],
            )
        )
    return tuple(versions)


def in_force(history: History, asked: datetime) -> Version | None:
    """The version whose occurrence this would be. An edit names times after itself, so one at its own instant
    belongs to the version before; only a one-shot may be added when its time has passed."""
    named = [occurrence.at for version in history if (occurrence := version.named(asked)) is not None]
    # An act within the asked second came after the occurrence in it, or before: the occurrence decides.
    instant = min(named, default=asked)
    found = [version for version in history if version.at < instant]
    if found:
        return found[-1]
    return history[0] if history[0].is_once and history[0].named(asked) else None


def successor(history: History, version: Version) -> Version | None:
    after = history.index(version) + 1
    return history[after] if after < len(history) else None


def begin_of(history: History, version: Version) -> Version:
    """The act that brought the status of this version: an edit of a paused schedule did not pause it."""
    first = version
    for earlier in reversed(history[: history.index(version)]):
        if earlier.status != version.status:
            break
        first = earlier
    return first


def latest_asked(row: Row, history: History, now: datetime) -> datetime:
    """The latest occurrence; if there was none yet, the one that is pending, or the next one there would be."""
    until = now
    for version in reversed(history):
        found = before(version, history, until)
        if found is not None:
            return found.at
        until = min(until, version.at)
    if row["nominal_at"] is not None:
        return as_utc(row["nominal_at"], "nominal_at")
    following = after(history[-1], history, now)
    return now if following is None else following.at


def before(version: Version, history: History, until: datetime) -> Occurrence | None:
    """Its latest occurrence up to `until`, since it is there."""
    if version.recurrence is None:
        return None
    once_past = version.is_once and version is history[0]
    return version.recurrence.latest_between(_BEGINNING if once_past else version.at, until)


def after(version: Version, history: History, instant: datetime) -> Occurrence | None:
    """Its first occurrence after `instant`, once the schedule is there."""
    if version.recurrence is None:
        return None
    return version.recurrence.occurrence_after(max(instant, history[0].at))
