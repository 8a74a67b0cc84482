"""Step `wait`: wait for a duration, a time of day, or an event that meets a condition.

The answer of a wait for an event has the fields of that event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import DueStep
from rules.actions.store import read_event
from rules.runbook import Completed, Outcome
from rules.runbook.wait import outcome_of_wait
from tocsin.core.instant import instant_text

_EVENT_FIELDS = ("id", "type", "owner", "schedule", "rule", "payload")


async def perform_wait(step: DueStep, context: StepContext) -> Outcome:
    event = None
    if "met" in step.entry:
        async with context.open_session() as connection:
            event = await read_event(connection, step.entry["met"])
    return wait_outcome(step, event)


def wait_outcome(step: DueStep, event: Mapping[str, Any] | None) -> Outcome:
    """The outcome with the fields of the event that ended the wait. Pure: no I/O."""
    assert step.document.wait is not None
    outcome = outcome_of_wait(step.document.wait, step.entry, step.run.read_at)
    if "met" not in step.entry or not isinstance(outcome, Completed):
        return outcome
    if event is None:
        return Completed({**outcome.answer, "event": {}})
    fields = {field: event[field] for field in _EVENT_FIELDS}
    return Completed({**outcome.answer, "event": {**fields, "ts": instant_text(event["ts"])}})
