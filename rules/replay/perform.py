"""Simulates the steps of actions: renders what a step would send, and sends nothing.

Guarantee: the live code renders the texts, decides whether they can be sent, and turns what a step
finds into its outcome. Only the other side is simulated (`SimulatedTargets`): every step succeeds,
except where a test makes an action fail, a probe find a fault or a service report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rules.actions.steps.deliver import outcome_if_disabled
from rules.actions.steps.digest_message import digest_message
from rules.actions.steps.digest_results import DigestMaterial, digest_results
from rules.actions.steps.due_step import DueStep
from rules.actions.steps.emit import perform_emit
from rules.actions.steps.flow import perform_branch
from rules.actions.steps.messages import message_of
from rules.actions.steps.probe import probe_outcome, probed_values
from rules.actions.steps.publish import check_sendable, outcome_of_entry
from rules.actions.steps.record import datapoint_batch, recorded_datapoint
from rules.actions.steps.wait import wait_outcome
from rules.delivery.alarm_facts import UTC_VIEW, MessageView
from rules.delivery.message import Message
from rules.delivery.probe import ProbeResult
from rules.dispatch.notifications import notification_name
from rules.language.templates import budget, fill, fill_subject, fill_text
from rules.runbook import Completed, Failed, Outcome, Paused
from schemas.documents.channel import ChannelDocument
from schemas.documents.runbook import PublishStep
from schemas.documents.runbook.digest import DigestStep
from tocsin.core.errors import InvalidInput

DELIVERIES = ("channel", "webhook", "slack", "email", "apprise")
DEFAULT_LATENCY_MS = 10.0
_FLOW = ("wait", "branch", "parallel")
"""Steps that reach no server, and so cannot fail."""
# The defaults of Tocsin and of NATS.
_NAMESPACE, _MAX_PAYLOAD = "tocsin", 1_048_576

DigestRows = Callable[[], DigestMaterial]
"""Returns the rows that a digest reads, as the live queries do."""


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
class ProbeFinding:
    """The result of the probes of an action, or of one of its steps."""

    action: str
    step: str | None
    result: ProbeResult

    def applies_to(self, due: DueStep) -> bool:
        return self.action == due.run.name and self.step in (None, due.node.name, due.kind)


@dataclass
class SimulatedTargets:
    """What steps find outside of their runs."""

    channels: Mapping[str, ChannelDocument] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    findings: list[ProbeFinding] = field(default_factory=list)
    """The newest is the last."""
    reported: set[str] = field(default_factory=set)
    """Actions whose dispatched steps wait for reports. Others are completed at once."""
    met_events: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """By seq, the events that ended waits."""

    def failure_of(self, due: DueStep) -> Failure | None:
        return next((failure for failure in self.failures if failure.applies_to(due)), None)

    def probe(self, due: DueStep) -> ProbeResult:
        for finding in reversed(self.findings):
            if finding.applies_to(due):
                return finding.result
        return probe_result(True, None)


@dataclass(frozen=True)
class StepResult:
    outcome: Outcome
    details: Mapping[str, Any]
    """What the step would have sent."""
    datapoints: Mapping[str, Any] | None = None


def probe_result(is_well: bool, latency_ms: float | None) -> ProbeResult:
    if is_well:
        latency_ms = DEFAULT_LATENCY_MS if latency_ms is None else latency_ms
        return ProbeResult(True, f"the service answered in {latency_ms:g} ms", latency_ms)
    return ProbeResult(False, "the service is not well", latency_ms)


def perform(due: DueStep, digest_rows: DigestRows, targets: SimulatedTargets) -> StepResult:
    try:
        result = _send(due, digest_rows, targets)
    except InvalidInput as error:
        return StepResult(Failed(str(error), permanent=True), {})
    failure = targets.failure_of(due)
    if failure is not None and due.kind not in _FLOW:
        failure.times -= 1
        return StepResult(Failed(failure.error), result.details)
    return result


def _send(due: DueStep, digest_rows: DigestRows, targets: SimulatedTargets) -> StepResult:
    kind, step = due.kind, due.document
    if kind in DELIVERIES:
        target = getattr(step, kind)
        channel = target.name if kind == "channel" else None
        return _deliver(message_of(due, target, _view(targets, channel)), targets, channel)
    if step.log is not None:
        text = fill_text(step.log.message, due.data)
        return StepResult(Completed({"message": text}), {"text": text})
    if step.publish is not None:
        sent = _published(due, step.publish)
        return StepResult(Completed({"subject": sent["subject"]}), sent)
    if step.dispatch is not None:
        return _dispatch(due, targets)
    if step.digest is not None:
        return _digest(due, step.digest, digest_rows(), targets)
    return _record_or_flow(due, targets)


def _view(targets: SimulatedTargets, channel: str | None) -> MessageView:
    document = targets.channels.get(channel or "")
    return UTC_VIEW if document is None else MessageView(tz=document.tz)


def _deliver(message: Message, targets: SimulatedTargets, channel: str | None) -> StepResult:
    named = {} if channel is None else {"channel": channel}
    document = targets.channels.get(channel or "")
    not_sent = None if document is None else outcome_if_disabled(document)
    if not_sent is not None:
        return StepResult(not_sent, not_sent.answer)
    return StepResult(Completed({"sent": True, **named}), {**named, **message_details(message)})


def _published(due: DueStep, publish: PublishStep) -> dict[str, Any]:
    with budget():
        subject, payload = fill_subject(publish.subject, due.data), fill(publish.payload, due.data)
    check_sendable(subject, json.dumps(payload, ensure_ascii=False).encode(), _NAMESPACE, _MAX_PAYLOAD)
    return {"subject": subject, "payload": payload}


def _dispatch(due: DueStep, targets: SimulatedTargets) -> StepResult:
    dispatch = due.document.dispatch
    assert dispatch is not None
    ended = outcome_of_entry(due)
    if ended is not None:
        return StepResult(ended, {})
    sent = _published(due, dispatch)
    if due.run.name in targets.reported:
        return StepResult(
            Paused(due.run.read_at + dispatch.within, answer={"subject": sent["subject"]}), sent
        )
    return StepResult(Completed(), sent)


def _digest(
    due: DueStep, digest: DigestStep, material: DigestMaterial, targets: SimulatedTargets
) -> StepResult:
    results = digest_results(digest, material)
    counts = results["counts"]
    message = digest_message(due, digest, results, _view(targets, digest.channel))
    if digest.channel is not None:
        result = _deliver(message, targets, digest.channel)
        assert isinstance(result.outcome, Completed)
        return StepResult(Completed({**result.outcome.answer, "counts": counts}), result.details)
    answer = {"subject": message.subject_line, "text": message.text, "counts": counts}
    if message.html:
        answer["html"] = message.html
    return StepResult(Completed(answer), message_details(message))


def _record_or_flow(due: DueStep, targets: SimulatedTargets) -> StepResult:
    step = due.document
    if step.record is not None:
        return _recorded(due, *recorded_datapoint(due))
    if step.probe is not None:
        owner, key = fill_text(step.probe.owner, due.data), fill_text(step.probe.key, due.data)
        result = targets.probe(due)
        recorded = _recorded(due, owner, probed_values(key, result))
        return StepResult(probe_outcome(recorded.outcome, result), recorded.details, recorded.datapoints)
    if step.emit is not None:
        return StepResult(perform_emit(due), {})
    if step.branch is not None:
        return StepResult(perform_branch(due), {})
    if step.wait is not None:
        return StepResult(wait_outcome(due, targets.met_events.get(due.entry.get("met", 0))), {})
    return StepResult(Completed(), {})


def _recorded(due: DueStep, owner: str, values: Mapping[str, Any]) -> StepResult:
    datapoints = {"owner": owner, "values": dict(values)}
    datapoint_batch(due, owner, values)
    return StepResult(Completed(datapoints), datapoints, datapoints)


def message_details(message: Message) -> dict[str, Any]:
    return {"subject": message.subject_line, "text": message.text, "payload": message.payload}
