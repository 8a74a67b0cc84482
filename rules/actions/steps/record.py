"""`record`: one observed datapoint, by the way that all datapoints take.

Guarantee: the data lane's stream has it before the step is completed, and keeps one of the attempts: each has the same
`Nats-Msg-Id`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nats.js.errors import NoStreamResponseError

from rules.actions.steps.task import Task
from rules.language.templates import fill, fill_text
from rules.runbook import Completed, Failed, Outcome
from schemas.values.key_pattern import check_key
from schemas.wire.subjects import datapoint_subject
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_ACK_S = 5
_LONGEST_OWNER = 128


async def perform_record(task: Task) -> Outcome:
    step = task.node.step.record
    assert step is not None
    value = fill(step.value, task.data)
    if not isinstance(value, str | int | float | bool):
        raise InvalidInput(f"the value of a datapoint is a number, a text, true or false, not {value!r}")
    return await send_datapoints(
        task, fill_text(step.owner, task.data), {fill_text(step.key, task.data): value}
    )


async def send_datapoints(task: Task, owner: str, values: Mapping[str, str | float | bool]) -> Outcome:
    if not owner or len(owner) > _LONGEST_OWNER:
        raise InvalidInput(
            f"the owner of a datapoint is {owner[:40]!r}", remedy=f"give 1 to {_LONGEST_OWNER} characters"
        )
    ts = instant_text(task.action.at)
    try:
        batch = [{"key": check_key(key), "value": value, "ts": ts} for key, value in values.items()]
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    subject = datapoint_subject(task.world.settings.subjects, owner, "")
    body: dict[str, Any] = {"batch": batch}
    headers = {**task.headers, "Nats-Msg-Id": task.key}
    js = task.world.bus.jetstream(timeout=_ACK_S)
    try:
        await js.publish(subject, json.dumps(body).encode(), headers=headers)
    except NoStreamResponseError:
        return Failed("no stream takes datapoints: `tocsin run worker` makes it")
    return Completed({"owner": owner, "values": dict(values)})
