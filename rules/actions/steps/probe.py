"""Step `probe`: check a service from outside, and write the result as datapoints.

Guarantee: a service that does not answer is a result, not a failure of the step: `<key>` is false.
A check that could not be made (an address that the egress guard rejects, a missing secret) fails
the step and writes no datapoint.
"""

from __future__ import annotations

from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import MAX_TEXT_LENGTH, DueStep
from rules.actions.steps.record import send_datapoints
from rules.delivery.probe import ProbeResult, probe
from rules.language.templates import fill_text
from rules.runbook import Completed, Outcome


async def perform_probe(step: DueStep, context: StepContext) -> Outcome:
    document = step.document.probe
    assert document is not None
    owner, key = fill_text(document.owner, step.data), fill_text(document.key, step.data)
    result = await probe(context.egress, document, context.secrets())
    sent = await send_datapoints(step, context, owner, probed_values(key, result))
    return probe_outcome(sent, result)


def probed_values(key: str, result: ProbeResult) -> dict[str, str | float | bool]:
    """The values by key that a probe writes. Pure: no I/O."""
    values: dict[str, str | float | bool] = {key: result.is_well}
    if result.latency_ms is not None:
        values[f"{key}.latency_ms"] = result.latency_ms
    return values


def probe_outcome(sent: Outcome, result: ProbeResult) -> Outcome:
    """The outcome of a probe whose datapoints were sent with the outcome `sent`. Pure: no I/O."""
    if not isinstance(sent, Completed):
        return sent
    answer = {"well": result.is_well, "text": result.text[:MAX_TEXT_LENGTH], "latency_ms": result.latency_ms}
    return Completed({**sent.answer, **answer, **({"status": result.status} if result.status else {})})
