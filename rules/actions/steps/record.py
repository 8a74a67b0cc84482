"""Step `record`: sends one datapoint (not a record of the log) to the data stream, as a producer
does.

Guarantee: the step is completed after the data stream has stored the datapoint. All attempts have
the same `Nats-Msg-Id`, so the stream stores only one of them within its duplicate window (two
minutes). A later attempt stores a second datapoint. The `ts` of a datapoint is the instant at which
its attempt read the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nats.js.errors import NoStreamResponseError

from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import DueStep
from rules.actions.steps.message_id import message_id
from rules.language.templates import budget, fill, fill_text
from rules.runbook import Completed, Failed, Outcome
from schemas.values.key_pattern import check_key
from schemas.values.names import MAX_OWNER_LENGTH
from schemas.wire.subjects import datapoint_subject
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_ACK_TIMEOUT_S = 5


async def perform_record(step: DueStep, context: StepContext) -> Outcome:
    return await send_datapoints(step, context, *recorded_datapoint(step))


def recorded_datapoint(step: DueStep) -> tuple[str, dict[str, str | float | bool]]:
    """The owner and the value by its key. Pure: no I/O."""
    record = step.document.record
    assert record is not None
    with budget():
        value = fill(record.value, step.data)
        if not isinstance(value, str | int | float | bool):
            raise InvalidInput(f"the value of a datapoint is a number, a text, true or false, not {value!r}")
        return fill_text(record.owner, step.data), {fill_text(record.key, step.data): value}


async def send_datapoints(
    step: DueStep, context: StepContext, owner: str, values: Mapping[str, str | float | bool]
) -> Outcome:
    """Send all values of one owner in one message. The step `probe` sends its results with it."""
    batch = datapoint_batch(step, owner, values)
    # The keys are in the batch.
    subject = datapoint_subject(context.settings.subjects, owner, key="")
    body: dict[str, Any] = {"batch": batch}
    headers = {**step.headers, "Nats-Msg-Id": await message_id(step, context)}
    js = context.nats.jetstream(timeout=_ACK_TIMEOUT_S)
    try:
        await js.publish(subject, json.dumps(body).encode(), headers=headers)
    except NoStreamResponseError:
        return Failed("the data stream does not exist: `tocsin run worker` creates it")
    return Completed({"owner": owner, "values": dict(values)})


def datapoint_batch(
    step: DueStep, owner: str, values: Mapping[str, str | float | bool]
) -> list[dict[str, Any]]:
    """The datapoints of a message. `InvalidInput` if the owner or a key cannot be used. Pure: no I/O."""
    if not owner or len(owner) > MAX_OWNER_LENGTH:
        raise InvalidInput(
            f"the owner {owner[:40]!r} of the datapoint is empty or too long",
            remedy=f"give 1 to {MAX_OWNER_LENGTH} characters",
        )
    ts = instant_text(step.run.read_at)
    try:
        return [{"key": check_key(key), "value": value, "ts": ts} for key, value in values.items()]
    except ValueError as error:
        raise InvalidInput(str(error)) from None
