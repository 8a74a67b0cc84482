"""Step `record`: send one datapoint to the data stream, as a producer does.

Guarantee: the step is completed after the data stream has stored the datapoint. Each attempt has
the same `Nats-Msg-Id`, so the stream stores one of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nats.js.errors import NoStreamResponseError

from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import DueStep
from rules.language.templates import fill, fill_text
from rules.runbook import Completed, Failed, Outcome
from schemas.values.key_pattern import check_key
from schemas.wire.subjects import datapoint_subject
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_ACK_TIMEOUT_S = 5
_MAX_OWNER_LENGTH = 128


async def perform_record(step: DueStep, context: StepContext) -> Outcome:
    record = step.document.record
    assert record is not None
    value = fill(record.value, step.data)
    if not isinstance(value, str | int | float | bool):
        raise InvalidInput(f"the value of a datapoint is a number, a text, true or false, not {value!r}")
    owner, key = fill_text(record.owner, step.data), fill_text(record.key, step.data)
    return await send_datapoints(step, context, owner, {key: value})


async def send_datapoints(
    step: DueStep, context: StepContext, owner: str, values: Mapping[str, str | float | bool]
) -> Outcome:
    if not owner or len(owner) > _MAX_OWNER_LENGTH:
        raise InvalidInput(
            f"the owner of a datapoint is {owner[:40]!r}", remedy=f"give 1 to {_MAX_OWNER_LENGTH} characters"
        )
    ts = instant_text(step.run.at)
    try:
        batch = [{"key": check_key(key), "value": value, "ts": ts} for key, value in values.items()]
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    subject = datapoint_subject(context.settings.subjects, owner, "")
    body: dict[str, Any] = {"batch": batch}
    headers = {**step.headers, "Nats-Msg-Id": step.idempotency_key}
    js = context.bus.jetstream(timeout=_ACK_TIMEOUT_S)
    try:
        await js.publish(subject, json.dumps(body).encode(), headers=headers)
    except NoStreamResponseError:
        return Failed("no stream takes datapoints: `tocsin run worker` makes it")
    return Completed({"owner": owner, "values": dict(values)})
