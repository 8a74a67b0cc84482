"""`record`: one observed datapoint, by the way that all datapoints take.

Guarantee: the data lane's stream has it before the step is completed, and keeps one of the attempts: each has the same
`Nats-Msg-Id`.
"""

from __future__ import annotations

import json

from nats.errors import NoRespondersError

from rules.delivery.templates import fill, fill_text
from rules.runbook import Completed, Failed, Outcome
from rules.steps.task import Task
from schemas.event import instant_text
from schemas.subjects import datapoint_subject
from tocsin.core.errors import InvalidInput

_LONGEST = 256


async def perform_record(task: Task) -> Outcome:
    step = task.node.step.record
    assert step is not None
    value = fill(step.value, task.data)
    if not isinstance(value, str | int | float | bool):
        raise InvalidInput(f"the value of a datapoint is a number, a text, true or false, not {value!r}")
    return await send_datapoint(task, fill_text(step.owner, task.data), fill_text(step.key, task.data), value)


async def send_datapoint(task: Task, owner: str, key: str, value: str | float | bool) -> Outcome:
    for what, text in (("owner", owner), ("key", key)):
        if not text or len(text) > _LONGEST:
            raise InvalidInput(f"the {what} of a datapoint is {text[:40]!r}: give 1 to {_LONGEST} characters")
    subject = datapoint_subject(task.world.settings.subjects, owner, key)
    body = {"value": value, "ts": instant_text(task.action.at)}
    headers = {**task.headers, "Nats-Msg-Id": task.key}
    js = task.world.bus.jetstream(timeout=5)
    try:
        await js.publish(subject, json.dumps(body).encode(), headers=headers)
    except NoRespondersError:
        return Failed("no stream takes datapoints: `tocsin run worker` makes it")
    return Completed({"owner": owner, "key": key, "value": value})
