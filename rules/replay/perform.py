"""Simulates the steps of actions: renders what a step would send, and sends nothing.

Guarantee: the live code renders the texts. Every step succeeds, except where a test makes an action
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rules.actions.steps.digest_message import digest_message
from rules.actions.steps.due_step import DueStep
from rules.actions.steps.emit import perform_emit
from rules.actions.steps.flow import perform_branch
from rules.actions.steps.messages import message_of
from rules.delivery.message import Message
from rules.dispatch.notifications import notification_name
from rules.language.templates import fill, fill_subject, fill_text
from rules.runbook import Completed, Failed, Outcome
from rules.runbook.wait import outcome_of_wait
from schemas.documents.runbook.digest import DigestStep
from tocsin.core.errors import InvalidInput

DELIVERIES = ("channel", "webhook", "slack", "email", "apprise")
_FLOW = ("wait", "branch", "parallel")
"""Steps that reach no server, and so cannot fail."""

DigestRows = Callable[[], Mapping[str, Any]]
"""Returns the rows that a digest finds, by query."""


@dataclass
class Failure:
    """Makes the next `times` attempts of an action's steps, or of one step, fail."""

    action: str
    step: str | None
    times: int
    error: str

    def applies_to(self, due: DueStep) -> bool:
        is_step = self.step in (None, due.node.name, due.kind)
        return self.times > 0 and self.action == due.run.name and is_step

    def applies_to_channel(self, name: str) -> bool:
        """Whether a notification to a channel fails."""
        is_step = self.step in (None, "notify")
        return self.times > 0 and self.action == notification_name(name) and is_step


@dataclass(frozen=True)
class StepResult:
    outcome: Outcome
    details: Mapping[str, Any]
    """What the step would have sent."""
    datapoints: Mapping[str, Any] | None = None


def perform(due: DueStep, digest_rows: DigestRows, failures: list[Failure]) -> StepResult:
    try:
        result = _send(due, digest_rows)
    except InvalidInput as error:
        return StepResult(Failed(str(error), permanent=True), {})
    failure = next((failure for failure in failures if failure.applies_to(due)), None)
    if failure is not None and due.kind not in _FLOW:
        failure.times -= 1
        return StepResult(Failed(failure.error), result.details)
    return result


def _send(due: DueStep, digest_rows: DigestRows) -> StepResult:
    kind, step, data = due.kind, due.document, due.data
    if kind in DELIVERIES:
        target = getattr(step, kind)
        channel = {"channel": target.name} if kind == "channel" else {}
        details = {**channel, **message_details(message_of(due, target))}
        return StepResult(Completed({"sent": True, **channel}), details)
    if step.log is not None:
        text = fill_text(step.log.message, data)
        return StepResult(Completed({"message": text}), {"text": text})
    published = step.publish or step.dispatch
    if published is not None:
        subject = fill_subject(published.subject, data)
        payload = fill(published.payload, data)
        return StepResult(Completed({"subject": subject}), {"subject": subject, "payload": payload})
    if step.digest is not None:
        return _digest(due, step.digest, digest_rows())
    return _record_or_flow(due)


def _digest(due: DueStep, digest: DigestStep, found: Mapping[str, Any]) -> StepResult:
    counts = {query: len(found[query]) for query in digest.queries}
    rows = {query: found[query][: digest.limit] if query in counts else [] for query in found}
    message = digest_message(due, digest, {**rows, "counts": counts})
    answer = {"subject": message.subject_line, "text": message.text, "counts": counts}
    return StepResult(Completed(answer), {"channel": digest.channel, **message_details(message)})


def _record_or_flow(due: DueStep) -> StepResult:
    step, data = due.document, due.data
    if step.record is not None:
        owner, key = fill_text(step.record.owner, data), fill_text(step.record.key, data)
        datapoints = {"owner": owner, "values": {key: fill(step.record.value, data)}}
        return StepResult(Completed(datapoints), datapoints, datapoints)
    if step.probe is not None:
        owner, key = fill_text(step.probe.owner, data), fill_text(step.probe.key, data)
        datapoints = {"owner": owner, "values": {key: True}}
        return StepResult(Completed({**datapoints, "well": True}), datapoints, datapoints)
    if step.emit is not None:
        return StepResult(perform_emit(due), {})
    if step.branch is not None:
        return StepResult(perform_branch(due), {})
    if step.wait is not None:
        return StepResult(outcome_of_wait(step.wait, due.entry, due.run.read_at), {})
    return StepResult(Completed(), {})


def message_details(message: Message) -> dict[str, Any]:
    return {"subject": message.subject_line, "text": message.text, "payload": message.payload}
