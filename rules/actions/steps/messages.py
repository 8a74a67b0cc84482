"""Builds the message of a delivery step from the texts of its document. Defaults replace the texts
that the document leaves out. Pure: no I/O.

Guarantee: the default for an event about an alarm is the message of its transition
(`rules.delivery.alarm_message`). The default for
any other event is its type, its name and its owner, with its payload. A `text` of the document also
replaces the default HTML, blocks and payload, so that all targets show the same content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rules.actions.steps.due_step import DueStep
from rules.delivery.alarm_facts import AlarmFacts, kind_of_event
from rules.delivery.alarm_message import alarm_message
from rules.delivery.message import Message
from rules.language.templates import fill, fill_html, fill_text
from schemas.documents.runbook.deliveries import Delivery
from tocsin.core.instant import instant_text, utc_text

_MAX_LISTED_EVENTS = 20
_PAYLOAD_FIELDS = ("type", "schedule", "rule", "action", "owner")


def message_of(step: DueStep, document: Delivery) -> Message:
    default = default_message(step)
    # Each kind of delivery has only some of these keys.
    subject, text, html, blocks, payload = (
        getattr(document, key, None) for key in ("subject", "text", "html", "blocks", "payload")
    )
    data = step.data
    # A text of the document replaces all default forms.
    default_forms = default if text is None else Message("", "")
    return Message(
        subject=default.subject if subject is None else fill_text(subject, data),
        text=default.text if text is None else fill_text(text, data),
        html=default_forms.html if html is None else fill_html(html, data),
        blocks=default_forms.blocks if blocks is None else fill(blocks, data),
        payload=default_forms.payload if payload is None else fill(payload, data),
    )


def default_message(step: DueStep) -> Message:
    event, alarm = step.facts.event, step.facts.alarm
    kind = kind_of_event(event["type"])
    if alarm["id"]:
        return alarm_message(AlarmFacts.of(alarm, event), kind or "opened", event["ts"])
    return _event_message(step.facts.events)


def _event_message(events: Sequence[Mapping[str, Any]]) -> Message:
    subject = event_title(events[0])
    if len(events) > 1:
        subject = f"{len(events)} events: {subject} and others"
    lines = [f"{utc_text(event['ts'])}  {event_title(event)}" for event in events[:_MAX_LISTED_EVENTS]]
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
