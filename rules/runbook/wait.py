"""The outcome of a `wait` step, from the instant at which it is reached.

A time of day is a cron recurrence in its timezone. On the day on which the clocks skip that time,
the wait ends when they jump forward. On the day on which it comes twice, the wait ends the first
time. `days` is the last field of that cron expression.

Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from rules.runbook.outcomes import Completed, Outcome, Paused, TimedOut
from schemas.documents.runbook import WaitStep
from schemas.values.duration import format_duration
from timers.recurrence import Recurrence, parse
from tocsin.core.errors import InvalidInput

_DAYS = re.compile(r"[A-Za-z]{3}([-,][A-Za-z]{3})*")


def outcome_of_wait(wait: WaitStep, entry: Mapping[str, Any], at: datetime) -> Outcome:
    """Depends on the entry of the step: reached, over (`lapsed`), or met by an event (`met`)."""
    if "met" in entry:
        return Completed({"event_seq": entry["met"], "timed_out": False})
    if not entry.get("lapsed"):
        return _pause(wait, at)
    if wait.timeout is None:
        return Completed()
    if wait.on_timeout == "continue":
        return Completed({"timed_out": True})
    return TimedOut(f"no event met the condition within {format_duration(wait.timeout)}")


def _pause(wait: WaitStep, at: datetime) -> Paused:
    if wait.for_ is not None:
        return Paused(at + wait.for_)
    if wait.until is not None:
        return Paused(times_of_day(wait.until, wait.tz, wait.days).next_after(at))
    return Paused(None if wait.timeout is None else at + wait.timeout, wait.until_event)


@lru_cache(maxsize=1_024)
def times_of_day(time_of_day: str, tz: str, days: str | None) -> Recurrence:
    """`InvalidInput` if there is no such timezone, or if `days` are no days of the week."""
    if days is not None and not _DAYS.fullmatch(days):
        raise InvalidInput(f"{days!r} are no days of the week", remedy="write them as MON-FRI, or as SAT,SUN")
    hour, minute = time_of_day.split(":")
    return parse(cron=f"{int(minute)} {int(hour)} * * {days or '*'}", tz=tz)
