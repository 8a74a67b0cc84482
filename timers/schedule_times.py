"""The next occurrence of a schedule, computed before anything is written. Pure.

Both an edit and the plan of an edit use it.

Guarantee: an edit that leaves the text of the recurrence unchanged keeps its anchor. The next
occurrence lies after `now` and after every occurrence that is done.

On failure: `InvalidInput` for a spread that is too long, `Refused` for a schedule that would never
fire again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from timers.recurrence import Occurrence, Recurrence, parse, parse_identity
from timers.schedule_spec import ScheduleSpec
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.instant import parse_instant

Row = dict[str, Any]
"""A schedule with its tick, as timers/find_schedule returns it."""


def recurrence_of_spec(spec: ScheduleSpec, row: Row | None, now: datetime) -> Recurrence:
    """The recurrence of a specification.

    An edit that leaves its text unchanged keeps its anchor: re-applying a file moves nothing.
    """
    arguments = {"hash_id": spec.name, **spec.recurrence}
    recurrence = _unchanged_recurrence(arguments, row["recurrence"]) if row is not None else None
    recurrence = recurrence or parse(**{"anchor": now.replace(microsecond=0), **arguments})
    if spec.spread and spec.spread >= recurrence.minimum_distance():
        raise InvalidInput(
            f"the spread {spec.spread} of schedule {spec.name!r} is not shorter than the distance between its "
            f"occurrences ({recurrence.minimum_distance()})",
            remedy="shorten it",
        )
    return recurrence


def _unchanged_recurrence(arguments: dict[str, Any], stored: Mapping[str, Any]) -> Recurrence | None:
    """The stored recurrence, if it equals the new one.

    The anchor or DTSTART that was filled in when the schedule was added is not compared.
    """
    if "anchor" in arguments:
        return None
    filled_in: dict[str, Any] = {}
    if "anchor" in stored:
        filled_in["anchor"] = parse_instant(stored["anchor"])
    elif "rrule" in arguments and "dtstart" in stored and arguments.get("dtstart") is None:
        filled_in["dtstart"] = stored["dtstart"]
    if not filled_in:
        return None
    try:
        recurrence = parse(**{**arguments, **filled_in})
    except InvalidInput:
        # With the old anchor the new bounds may leave no occurrence. The caller then parses the new
        # recurrence with a new anchor.
        return None
    return recurrence if recurrence.spec == stored else None


class Done(NamedTuple):
    """The newest occurrence of a schedule that is done."""

    until: datetime | None
    identity: str | None
    """Its wall time and fold, if they identify it."""


NOTHING_DONE = Done(None, None)


def done_of(row: Row | None, tz: object) -> Done:
    """The newest done occurrence of a stored schedule, for an edit with this timezone.

    The wall time of a done occurrence counts only in its own zone.
    """
    if row is None:
        return NOTHING_DONE
    same_zone = row["recurrence"].get("tz") == tz
    return Done(row["last_occurrence"], row["last_identity"] if same_zone else None)


def next_occurrence(row: Row, recurrence: Recurrence, now: datetime, done: Done) -> Occurrence:
    """The first occurrence after `now` and after every occurrence that is done."""
    after = now if done.until is None else max(now, done.until)
    following = recurrence.occurrence_behind(after, parse_identity(done.identity))
    if following is None:
        raise Refused(
            f"schedule {row['name']!r} would never fire again ({recurrence.describe()})",
            remedy="give it a time in the future, or cancel it",
        )
    return following
