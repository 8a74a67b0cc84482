"""What a step says: the texts of its document, and what the action is about where it gives none.

Guarantee: an alarm that opened or resolved is told as `rules.delivery.alarm_message` tells it; any other event is its
type, its name and its owner, with its payload. A text of the author's own replaces every form that was made from ours,
so that no target shows another message than the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.actions.steps.task import Task
from rules.delivery.alarm_message import alarm_message
from rules.delivery.message import Message
from rules.language.templates import fill, fill_html, fill_text
from schemas.documents.runbook.deliveries import Delivery
from schemas.values.severities import level_name
from schemas.wire.alarm_events import RuleTransition, event_type
from tocsin.core.instant import instant_text, utc_text

_SHOWN_EVENTS = 20
_FIELDS = ("type", "schedule", "rule", "action", "owner")


def message_of(task: Task, step: Delivery) -> Message:
    given = {key: getattr(step, key, None) for key in ("subject", "text", "html", "blocks", "payload")}
    ours = default_message(task)
    if all(value is None for value in given.values()):
        return ours
    data = task.data
    subject, text, html = given["subject"], given["text"], given["html"]
    blocks, payload = given["blocks"], given["payload"]
    kept = ours if text is None else None
    return Message(
        subject=ours.subject if subject is None else fill_text(subject, data),
        text=ours.text if text is None else fill_text(text, data),
        html=(kept.html if kept else None) if html is None else fill_html(html, data),
        blocks=(kept.blocks if kept else None) if blocks is None else _filled(blocks, data),
        payload=(kept.payload if kept else None) if payload is None else _filled(payload, data),
    )


def default_message(task: Task) -> Message:
    event, alarm = task.situation.event, task.situation.alarm
    if alarm["id"]:
        is_resolved = event["type"] == event_type("resolved")
        transition: RuleTransition = "resolved" if is_resolved else "opened"
        return alarm_message(_alarm_facts(event, alarm), transition, event["ts"])
    return _event_message(task)


def _alarm_facts(event: Mapping[str, Any], alarm: Mapping[str, Any]) -> dict[str, Any]:
    payload = {**alarm["payload"], **event["payload"]}
    return {
        "rule": alarm["rule"],
        "severity": level_name(alarm["severity"]),
        "owner": alarm["owner"],
        "since": alarm["since"],
        "message": payload.get("message") or alarm["message"],
        "alarm_id": alarm["id"],
        **{key: payload.get(key) for key in ("key", "value", "threshold")},
    }


def _event_message(task: Task) -> Message:
    events = task.situation.events
    subject = _title(events[0])
    if len(events) > 1:
        subject = f"{len(events)} events: {subject} and others"
    lines = [f"{utc_text(one['ts'])}  {_title(one)}" for one in events[:_SHOWN_EVENTS]]
    if len(events) > _SHOWN_EVENTS:
        lines.append(f"and {len(events) - _SHOWN_EVENTS} more")
    return Message(subject, "\n".join(lines) + "\n", payload={"events": [_plain(one) for one in events]})


def _title(event: Mapping[str, Any]) -> str:
    name = event["schedule"] or event["rule"] or event["action"]
    owner = f" ({event['owner']})" if event["owner"] else ""
    return f"{event['type']}{f' {name}' if name else ''}{owner}"


def _plain(event: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: event[key] for key in _FIELDS if event[key]}
    return {"id": event["id"], "ts": instant_text(event["ts"]), **facts, "payload": event["payload"]}


def _filled(template: Any, data: Mapping[str, Any]) -> Any:
    return fill(template, data)
