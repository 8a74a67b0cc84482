"""Sentences about what an operator did to an alarm, the same on the command line and in the console. Pure."""

from __future__ import annotations

from datetime import datetime

from timers.time_text import utc_text


def acknowledged_text(title: str, seq: int | None, by: str | None, at: datetime | None) -> str:
    """`seq` is None if the alarm was acknowledged before: `by` and `at` say by whom, and when."""
    if seq is not None:
        return f"acknowledged alarm {title}, seq {seq}"
    when = "" if at is None else f" by {by} at {utc_text(at)}"
    return f"alarm {title} was already acknowledged{when}"


def snoozed_text(title: str, seq: int | None, until: datetime | None) -> str:
    state = f"is snoozed until {utc_text(until)}" if until else "is no longer snoozed"
    effect = "; its notifications and runs are held until then" if until else ""
    return f"alarm {title} {state}{effect}, seq {seq}"


def resolved_text(title: str, seq: int | None) -> str:
    return f"resolved alarm {title}, seq {seq}"
