"""Warnings about schedules that never fire, or fire on days that were meant to be excluded.

Guarantee: a warning is about the document and the instant `now` alone. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import Any

from rules.documents.load.problems import RuleProblem
from rules.documents.load.recurrences import recurrence_arguments, recurrence_of
from rules.documents.load.source import SourceDocument
from rules.documents.load.yaml_tree import Path
from schemas.documents import ScheduleDocument
from schemas.documents.recurrence_keys import RECURRENCE_KEYS
from timers.recurrence import Recurrence, parse
from timers.recurrence.once import parse_wall
from timers.recurrence.rrule_text import parse_rule
from timers.recurrence.wall_time import resolve, to_wall
from timers.recurrence.zones import zone
from tocsin.core.instant import MICROSECOND

_DAYS = ("bymonthday", "byyearday", "byweekno")


def schedule_warnings(
    document: SourceDocument, schedule: ScheduleDocument, now: datetime | None
) -> Iterator[RuleProblem]:
    """`now` is None if the time of the apply is not known."""
    yield from _template_warnings(document, schedule.payload, ("payload",))
    if schedule.rrule is not None and schedule.dtstart is None:
        yield from _day_warnings(document, schedule.rrule)
    if now is None:
        return
    recurrence = recurrence_of(schedule, anchor=now, hash_id=schedule.name)
    if recurrence.next_after(now) is None:
        key = next(key for key in RECURRENCE_KEYS if getattr(schedule, key) is not None)
        when = "lies in the past" if key == "at" else "has no occurrence after now"
        message = f"'{key}' of {document.title} {when}, so it never fires: remove it"
        yield document.problem(document.body.at((key,)), message)
        return
    if schedule.exdates:
        yield from _exdate_warnings(document, schedule, now)


def _exdate_warnings(
    document: SourceDocument, schedule: ScheduleDocument, now: datetime
) -> Iterator[RuleProblem]:
    arguments = {**recurrence_arguments(schedule), "exdates": ()}
    recurrence = parse(**arguments, anchor=now, hash_id=schedule.name)
    tz = zone(schedule.tz)
    for index, text in enumerate(schedule.exdates):
        wall = parse_wall(text, "exdates")
        at = resolve(wall, tz).first
        if at < now or recurrence.next_after(at - MICROSECOND) == at:
            continue
        times = ", ".join(_times_of_day(recurrence, wall, tz)) or None
        reason = f"it fires at {times} on that day" if times else "nothing fires on that day"
        message = f"'exdates.{index}' of {document.title} is no occurrence: {reason}"
        yield document.problem(document.body.at(("exdates", index)), message)


def _times_of_day(recurrence: Recurrence, wall: datetime, tz: Any) -> Iterator[str]:
    """The wall times of up to three occurrences on a day."""
    midnight = datetime.combine(wall.date(), time())
    after, end = resolve(midnight, tz).first - MICROSECOND, resolve(midnight + timedelta(days=1), tz).first
    for _ in range(3):
        following = recurrence.next_after(after)
        if following is None or following >= end:
            return
        shown = to_wall(following, tz)
        yield f"{shown:%H:%M:%S}" if shown.second else f"{shown:%H:%M}"
        after = following


def _day_warnings(document: SourceDocument, text: str) -> Iterator[RuleProblem]:
    """Without `dtstart`, parts that the rule leaves out come from the day of the apply."""
    rule = parse_rule(text)
    numbers = {name.lower() for name in rule.numbers}
    missing = None
    if rule.freq == "WEEKLY" and not rule.days:
        missing = "BYDAY"
    elif rule.freq in ("MONTHLY", "YEARLY") and not (rule.days or numbers & set(_DAYS)):
        missing = "BYMONTHDAY or BYDAY"
    if missing is not None:
        message = (
            f"'rrule' of {document.title} depends on the day on which it is applied: "
            f"add {missing}, or 'dtstart'"
        )
        yield document.problem(document.body.at(("rrule",)), message)


def _template_warnings(document: SourceDocument, value: Any, path: Path) -> Iterator[RuleProblem]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _template_warnings(document, member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _template_warnings(document, member, (*path, index))
    elif isinstance(value, str) and "{{" in value:
        where = ".".join(str(step) for step in path)
        message = f"'{where}' of {document.title} is no template: '{{{{' is sent as it is"
        yield document.problem(document.body.at(path), message)
