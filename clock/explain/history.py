"""The generations of a schedule, and which of them name an instant. Pure.

Guarantee: every generation that the audit has is here, in the order of the changes that created
them, and the current one always. The ids of all fires that could have happened at the asked instant
follow from them (`timers.identity`), so that a fire is found by its id and never guessed from
times.

Why a second wide: an operator asks for 08:00:00, and a service schedules at an instant with
microseconds. An asked instant without a fraction means the second that begins there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from timers.catch_up import occurrence_at
from timers.identity import event_id_text
from timers.recurrence import Occurrence, Recurrence, parse_spec
from timers.recurrence.recurrence import as_utc
from timers.recurrence.skipped import moved_away
from tocsin.core.errors import TocsinError
from tocsin.core.instant import MICROSECOND, instant_text

Row = Mapping[str, Any]
_SECOND = timedelta(seconds=1)
_BEGINNING = datetime(2, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Version:
    """A schedule after one change."""

    generation: int
    at: datetime
    who: str
    via: str
    status: str
    spec: Any

    @cached_property
    def recurrence(self) -> Recurrence | None:
        """The recurrence; None if it cannot be evaluated, in which case the timer is parked."""
        try:
            return parse_spec(self.spec)
        except (TocsinError, TypeError, ValueError, KeyError, AttributeError):
            return None

    @property
    def tz(self) -> str:
        return self.recurrence.tz if self.recurrence is not None else "UTC"

    @property
    def description(self) -> str:
        return self.recurrence.describe() if self.recurrence is not None else "a broken recurrence"

    @property
    def is_once(self) -> bool:
        return isinstance(self.spec, dict) and "at" in self.spec

    def find_occurrence(self, asked: datetime) -> Occurrence | None:
        """The occurrence of this version at the asked instant, or None."""
        if self.recurrence is None:
            return None
        occurrence = self.recurrence.occurrence_after(asked - MICROSECOND)
        return occurrence if occurrence is not None and occurrence.at <= last_instant(asked) else None

    def exclusion(self, asked: datetime) -> str | None:
        """What removes an occurrence at the asked instant: its `exdates` or a calendar."""
        if self.recurrence is None:
            return None
        away = moved_away(self.recurrence, asked - MICROSECOND, last_instant(asked))
        if away is not None:
            return away.reason
        if not self.spec.get("exdates"):
            return None
        spec = {key: value for key, value in self.spec.items() if key != "exdates"}
        is_excluded = replace(self, spec=spec).find_occurrence(asked) is not None
        return f"excluded by exdates of {self.description}" if is_excluded else None

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
    """The end of the asked span: the instant itself, or the end of its second."""
    return asked if asked.microsecond else asked + _SECOND - MICROSECOND


def history_of(row: Row, changes: Sequence[Row]) -> History:
    """The versions of a schedule, from its row and its changes in the audit, oldest first."""
    versions = [
        Version(
            change["new"]["generation"],
            as_utc(change["at"], "at"),
            change["who"],
            change["via"],
            change["new"]["status"],
            change["new"]["recurrence"],
        )
        for change in changes
        if change["new"] and "recurrence" in change["new"]
    ]
    if not versions or versions[-1].generation != row["generation"]:
        # The row was changed by hand, or the audit was pruned. The row itself is still known.
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


def version_in_force(history: History, asked: datetime) -> Version | None:
    """The version that an occurrence at this instant would belong to.

    An edit names times after itself, so an occurrence at its own instant belongs to the version
    before. Only a one-shot may be added after its time has passed.
    """
    candidates = [version.find_occurrence(asked) for version in history]
    # A change within the asked second may be before or after the occurrence in it: the occurrence
    # decides.
    instant = min((occurrence.at for occurrence in candidates if occurrence is not None), default=asked)
    earlier = [version for version in history if version.at < instant]
    if earlier:
        return earlier[-1]
    return history[0] if history[0].is_once and history[0].find_occurrence(asked) else None


def successor(history: History, version: Version) -> Version | None:
    """The version that replaced this one; None for the current one."""
    index = history.index(version) + 1
    return history[index] if index < len(history) else None


def first_with_status(history: History, version: Version) -> Version:
    """The change that brought the status of this version.

    An edit of a paused schedule did not pause it.
    """
    first = version
    for earlier in reversed(history[: history.index(version)]):
        if earlier.status != version.status:
            break
        first = earlier
    return first


def default_instant(row: Row, history: History, now: datetime) -> datetime:
    """The instant to explain if none is asked for: the latest occurrence.

    If there was none yet, the pending one, or else the next one.
    """
    until = now
    for version in reversed(history):
        occurrence = latest_occurrence(version, history, until)
        if occurrence is not None:
            return occurrence.at
        until = min(until, version.at)
    if row["nominal_at"] is not None:
        return as_utc(row["nominal_at"], "nominal_at")
    following = next_occurrence(history[-1], history, now)
    return now if following is None else following.at


def latest_occurrence(version: Version, history: History, until: datetime) -> Occurrence | None:
    """The latest occurrence of the version up to `until`, since the version exists."""
    if version.recurrence is None:
        return None
    once_past = version.is_once and version is history[0]
    return version.recurrence.latest_between(_BEGINNING if once_past else version.at, until)


def next_occurrence(version: Version, history: History, instant: datetime) -> Occurrence | None:
    """The first occurrence of the version after `instant`, since the schedule exists."""
    if version.recurrence is None:
        return None
    return version.recurrence.occurrence_after(max(instant, history[0].at))
