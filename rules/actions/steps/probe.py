"""`probe`: a look at a service from outside, written as datapoints.

Guarantee: a service that does not answer is a finding, not a failure of the step: `<key>` is false. What could not be
looked at (a refused address, a missing secret) is a failure, and no datapoint.
"""

from __future__ import annotations

from rules.actions.steps.record import send_datapoints
from rules.actions.steps.task import LONGEST_KEPT, Task
from rules.delivery.probe import probe
from rules.language.templates import fill_text
from rules.runbook import Completed, Outcome


async def perform_probe(task: Task) -> Outcome:
    step = task.node.step.probe
    assert step is not None
    owner, key = fill_text(step.owner, task.data), fill_text(step.key, task.data)
    found = await probe(task.world.egress, step)
    values: dict[str, str | float | bool] = {key: found.is_well}
    if found.latency_ms is not None:
        values[f"{key}.latency_ms"] = found.latency_ms
    sent = await send_datapoints(task, owner, values)
    if not isinstance(sent, Completed):
        return sent
    result = {"well": found.is_well, "text": found.text[:LONGEST_KEPT], "latency_ms": found.latency_ms}
    return Completed({**sent.answer, **result, **({"status": found.status} if found.status else {})})
