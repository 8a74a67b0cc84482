"""What a step says to the world in a simulation, and what the world answers.

Guarantee: texts are rendered by the code that renders them live. The world answers that all is well, unless the test
says that an action fails.
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
from rules.language.templates import fill, fill_subject, fill_text
from rules.runbook import Completed, Failed, Outcome
from rules.runbook.wait import outcome_of_wait
from tocsin.core.errors import InvalidInput

DELIVERIES = ("channel", "webhook", "slack", "email", "apprise")


@dataclass
class Failure:
    """The next `times` attempts of an action's steps (or of one step) fail."""

    action: str
    step: str | None
    times: int
    error: str


@dataclass(frozen=True)
class Said:
    """What a step would have done in the world: shown in tests, sent to nobody."""

    outcome: Outcome
    said: Mapping[str, Any]
    datapoints: Mapping[str, Any] | None = None


Looks = Callable[[], Mapping[str, Any]]
"""What a digest would find."""


def perform(due: DueStep, looks: Looks, failures: list[Failure]) -> Said:
    try:
        said = _say(due, looks)
    except InvalidInput as error:
        return Said(Failed(str(error), permanent=True), {})
    failure = next((one for one in failures if _is_of(one, due)), None)
    if failure is not None and due.kind not in ("wait", "branch", "parallel"):
        failure.times -= 1
        return Said(Failed(failure.error), said.said)
    return said


def _is_of(failure: Failure, due: DueStep) -> bool:
    is_step = failure.step in (None, due.node.name, due.kind)
    return failure.times > 0 and failure.action == due.run.name and is_step


def _say(due: DueStep, looks: Looks) -> Said:
    kind, step, data = due.kind, due.document, due.data
    if kind in DELIVERIES:
        target = getattr(step, kind)
        message = message_of(due, target)
        channel = {"channel": target.name} if kind == "channel" else {}
        return Said(Completed({"sent": True, **channel}), {**channel, **_shown(message)})
    if step.log is not None:
        text = fill_text(step.log.message, data)
        return Said(Completed({"message": text}), {"text": text})
    published = step.publish or step.dispatch
    if published is not None:
        subject = fill_subject(published.subject, data)
        return Said(
            Completed({"subject": subject}), {"subject": subject, "payload": fill(published.payload, data)}
        )
    if step.digest is not None:
        digest, found = step.digest, looks()
        counts = {query: len(found[query]) for query in digest.queries}
        rows = {query: found[query][: digest.limit] if query in counts else [] for query in found}
        message = digest_message(due, digest, {**rows, "counts": counts})
        answer = {"subject": message.title, "text": message.text, "counts": counts}
        return Said(Completed(answer), {"channel": step.digest.channel, **_shown(message)})
    return _look_or_flow(due)


def _look_or_flow(due: DueStep) -> Said:
    step, data = due.document, due.data
    if step.record is not None:
        owner, key = fill_text(step.record.owner, data), fill_text(step.record.key, data)
        values = {"owner": owner, "values": {key: fill(step.record.value, data)}}
        return Said(Completed(values), values, values)
    if step.probe is not None:
        owner, key = fill_text(step.probe.owner, data), fill_text(step.probe.key, data)
        values = {"owner": owner, "values": {key: True}}
        return Said(Completed({**values, "well": True}), values, values)
    if step.emit is not None:
        return Said(perform_emit(due), {})
    if step.branch is not None:
        return Said(perform_branch(due), {})
    if step.wait is not None:
        return Said(outcome_of_wait(step.wait, due.entry, due.run.at), {})
    return Said(Completed(), {})


def _shown(message: Message) -> dict[str, Any]:
    return {"subject": message.title, "text": message.text, "payload": message.payload}
