"""Step `emit`: builds its event. `commit_outcome` appends the event in the transaction that
completes the step, so exactly once. Pure: no I/O."""

from __future__ import annotations

import json
import uuid

from rules.actions.steps.due_step import DueStep
from rules.language.templates import budget, fill, fill_text
from rules.runbook import Completed, Outcome
from schemas.values.names import MAX_OWNER_LENGTH
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_MAX_PAYLOAD_BYTES = 200_000


def perform_emit(step: DueStep) -> Outcome:
    emit = step.document.emit
    assert emit is not None
    with budget():
        owner = fill_text(emit.owner, step.data)
        payload = fill(emit.payload, step.data)
    assert isinstance(payload, dict)
    if len(owner) > MAX_OWNER_LENGTH:
        raise InvalidInput(
            f"the owner {owner[:40]!r}... is longer than {MAX_OWNER_LENGTH} characters", remedy="shorten it"
        )
    size = len(json.dumps(payload, ensure_ascii=False).encode())
    if size > _MAX_PAYLOAD_BYTES:
        raise InvalidInput(
            f"the payload has {size} bytes, at most {_MAX_PAYLOAD_BYTES} are accepted",
            remedy="shorten the payload",
        )
    run = step.run
    event = NewEvent(
        # Derived from the step, so that a second attempt appends the same event.
        id=uuid.uuid5(run.id, f"emit/{step.node.number}"),
        ts=run.read_at,
        origin="caused",
        type=emit.type,
        payload=payload,
        action=run.name,
        owner=owner,
        alarm_id=run.alarm_id,
        source_event_id=run.event_id,
        correlation_id=run.correlation_id,
    )
    return Completed({"event": str(event.id)}, event=event)
