"""Builds the message of a notification from the alarms as they are now. Pure: no I/O.

Guarantee: a message about one alarm is that of its transition or reminder (`rules.delivery.alarm_message`).
A message about a group lists its alarms with their states (`rules.delivery.group_message`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from rules.delivery.alarm_facts import UTC_VIEW, AlarmFacts, MessageView, kind_of_event
from rules.delivery.alarm_message import alarm_message
from rules.delivery.group_message import group_message
from rules.delivery.message import Message
from rules.runbook.notification_queue import DueMessage, NotifiedAlarm
from rules.suppression import Suppression
from schemas.documents.runbook.notify import NotifyStep

Alarm = Mapping[str, Any]


def members_of(alarms: Sequence[Alarm], suppressions: Mapping[str, Suppression]) -> list[NotifiedAlarm]:
    """The alarms as the queue sees them."""
    return [
        NotifiedAlarm(
            alarm["id"],
            alarm["state"] != "resolved",
            bool(alarm["acknowledged"]),
            _content(alarm),
            suppressions[alarm["id"]].key if alarm["id"] in suppressions else None,
        )
        for alarm in alarms
    ]


def notification_message(
    notify: NotifyStep,
    delivery: DueMessage,
    alarms: Sequence[Alarm],
    events: Mapping[str, Mapping[str, Any]],
    now: datetime,
    view: MessageView = UTC_VIEW,
) -> Message:
    """`events` are the newest events of alarms by their ids, as far as they are known; of a group, those
    of resolved alarms."""
    shown = [alarm for alarm in alarms if alarm["id"] in delivery.members]
    if notify.group_wait is not None:
        facts = [_facts(alarm, events.get(alarm["id"])) for alarm in shown]
        return group_message(facts, delivery.occasion, now, view, group=_group(notify, shown))
    event = events.get(shown[0]["id"])
    is_about = event is not None and kind_of_event(event["type"]) == delivery.occasion
    at = event["ts"] if event is not None and is_about else now
    return alarm_message(_facts(shown[0], event if is_about else None), delivery.occasion, at, view)


def idempotency_key(
    run_id: object, delivery: DueMessage, count: int, members: Sequence[NotifiedAlarm]
) -> str:
    """The same for every attempt to deliver the same message: the number of messages before it, and
    the states that it shows."""
    states = [
        (member.id, member.is_open, member.content) for member in members if member.id in delivery.members
    ]
    digest = hashlib.sha256(json.dumps([delivery.occasion, sorted(states)]).encode()).hexdigest()
    return f"{run_id}/{delivery.place}/{count}/{digest[:12]}"


def _facts(alarm: Alarm, event: Mapping[str, Any] | None) -> AlarmFacts:
    facts = AlarmFacts.of(alarm, event)
    if event is None and alarm["state"] != "resolved" and alarm.get("snoozed"):
        facts = replace(facts, snoozed_until=alarm.get("snoozed_until"))
    return facts


def _group(notify: NotifyStep, alarms: Sequence[Alarm]) -> dict[str, Any]:
    """The values that the alarms of a group share."""
    first = alarms[0]
    fields = {"rule": first["rule"], "owner": first["owner"], "severity": first["severity"]}
    values: dict[str, Any] = {}
    for path in notify.group_by:
        value: Any = {**fields, "payload": first["payload"], "labels": first["payload"].get("labels") or {}}
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        values[path] = value
    return values


def _content(alarm: Alarm) -> str:
    """Differs if the severity or the payload of the alarm changed: a `changed` transition."""
    text = json.dumps([alarm["severity"], alarm["payload"]], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
