"""`emit`: an event of our own log, appended in the transaction that completes the step, so exactly once."""

from __future__ import annotations

import json
import uuid

from rules.actions.steps.task import Task
from rules.language.templates import fill, fill_text
from rules.runbook import Completed, Outcome
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_LONGEST_OWNER = 128
_LARGEST_BYTES = 200_000


async def perform_emit(task: Task) -> Outcome:
    step = task.node.step.emit
    assert step is not None
    owner = fill_text(step.owner, task.data)
    payload = fill(step.payload, task.data)
    assert isinstance(payload, dict)
    if len(owner) > _LONGEST_OWNER:
        raise InvalidInput(
            f"the owner {owner[:40]!r}... is longer than {_LONGEST_OWNER} characters", remedy="shorten it"
        )
    size = len(json.dumps(payload, ensure_ascii=False).encode())
    if size > _LARGEST_BYTES:
        raise InvalidInput(
            f"the payload has {size} bytes, at most {_LARGEST_BYTES} are accepted", remedy="send less"
        )
    action = task.action
    event = NewEvent(
        # Derived, so that whatever happens twice is one event.
        id=uuid.uuid5(action.id, f"emit/{task.node.number}"),
        ts=action.at,
        origin="caused",
        type=step.type,
        payload=payload,
        action=action.name,
        owner=owner,
        alarm_id=action.alarm_id,
        source_event_id=action.event_id,
        correlation_id=action.correlation_id,
    )
    return Completed({"event": str(event.id)}, event=event)
