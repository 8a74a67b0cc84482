"""Builds the message of a delivery step from the texts of its document. Defaults replace the texts
that the document leaves out. Pure: no I/O.

Guarantee: the default for an event about an alarm is the message of its transition
(`rules.delivery.alarm_message`). If the run has several alarms, it lists them with their states
(`rules.delivery.group_message`). The default for any other event is its type, its name and its
owner, with its payload. A text that cannot be filled never loses the message: the default is sent
instead, with the reason in the answer of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rules.actions.steps.due_step import DueStep
from rules.delivery.alarm_facts import UTC_VIEW, AlarmFacts, MessageView, kind_of_event
from rules.delivery.alarm_message import alarm_message
from rules.delivery.group_message import group_message
from rules.delivery.message import Message
from rules.language.templates import budget, fill, fill_html, fill_text
from schemas.documents.runbook.deliveries import Delivery
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_MAX_LISTED_EVENTS = 20
_PAYLOAD_FIELDS = ("type", "schedule", "rule", "action", "owner")


def message_of(step: DueStep, document: Delivery, view: MessageView = UTC_VIEW) -> Message:
    """The message of a step. A text that cannot be filled is replaced by the default, and
    `Message.problem` has the reason."""
    default = default_message(step, view)
    # Each kind of delivery has only some of these keys.
    templates = {
        key: getattr(document, key, None) for key in ("subject", "text", "html", "blocks", "payload")
    }
    return fill_message(default, templates, step.data)


def fill_message(default: Message, templates: Mapping[str, Any], data: Mapping[str, Any]) -> Message:
    """The message of `templates` by the names of the forms. None stands for the default.

    A text replaces the default HTML and blocks. The default payload keeps its facts, and has the
    subject and the text as well, so that a receiver can tell which alarm a message is about.
    """
    filled, problems = _fill_forms(templates, data)
    subject = filled.get("subject", default.subject)
    forms = {"html": default.html, "blocks": default.blocks, "payload": default.payload}
    if "text" in filled:
        payload = {**(default.payload or {}), "subject": subject, "text": filled["text"]}
        forms = {"html": None, "blocks": None, "payload": payload}
    return Message(
        **{"text": default.text, **forms, **filled, "subject": subject},
        problem="; ".join(problems) or None,
    )


def _fill_forms(templates: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The forms that can be filled, and the problems of the others. All share one budget."""
    filled: dict[str, Any] = {}
    problems: list[str] = []
    with budget():
        for key, fill_template in _FILL.items():
            template = templates.get(key)
            if template is not None:
                try:
                    filled[key] = fill_template(template, data)
                except InvalidInput as error:
                    problems.append(f"{key}: {error}")
    return filled, problems


_FILL: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "subject": fill_text,
    "text": fill_text,
    "html": fill_html,
    "blocks": fill,
    "payload": fill,
}


def default_message(step: DueStep, view: MessageView = UTC_VIEW) -> Message:
    event, alarm = step.facts.event, step.facts.alarm
    kind = kind_of_event(event["type"])
    if len(step.facts.alarms) > 1:
        members = [AlarmFacts.of(member) for member in step.facts.alarms]
        return group_message(members, kind or "opened", step.run.read_at, view)
    if alarm["id"]:
        return alarm_message(AlarmFacts.of(alarm, event), kind or "opened", event["ts"], view)
    return _event_message(step.facts.events, view)


def _event_message(events: Sequence[Mapping[str, Any]], view: MessageView) -> Message:
    subject = event_title(events[0])
    if len(events) > 1:
        subject = f"{len(events)} events: {subject} and others"
    lines = [f"{view.instant(event['ts'])}  {event_title(event)}" for event in events[:_MAX_LISTED_EVENTS]]
    if len(events) > _MAX_LISTED_EVENTS:
        lines.append(f"and {len(events) - _MAX_LISTED_EVENTS} more")
    payload = {"events": [_event_payload(event) for event in events]}
    return Message(subject, "\n".join(lines) + "\n", payload=payload)


def event_title(event: Mapping[str, Any]) -> str:
    """The type, the name and the owner of an event, on one line."""
    name = event["schedule"] or event["rule"] or event["action"]
    owner = f" ({event['owner']})" if event["owner"] else ""
    return f"{event['type']}{f' {name}' if name else ''}{owner}"


def _event_payload(event: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: event[key] for key in _PAYLOAD_FIELDS if event[key]}
    return {"id": event["id"], "ts": instant_text(event["ts"]), **fields, "payload": event["payload"]}
