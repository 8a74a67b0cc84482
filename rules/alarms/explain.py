"""Explains the state of an alarm: when it began, its transitions, its operators and its runs.

Guarantee: every line of the history names the seq of its event. Nothing is computed that is not in
the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from rules.alarms.explain_references import ReferencesExplanation, explain_references, rule_over_alarms
from rules.alarms.notifications import list_notifications, status_text
from rules.alarms.queries import Row, list_alarm_events, list_alarm_runs, list_alarm_timers
from rules.suppression import Suppression, matched_alarm
from rules.suppression.reader import Suppressions
from schemas.values.plain_number import plain_text
from schemas.wire.alarm_events import event_type
from tocsin.core.db import Connection
from tocsin.core.instant import instant_text, parse_instant

TRANSITION_TEXTS = {
    event_type("opened"): "opened",
    event_type("resolved"): "resolved",
    event_type("acknowledged"): "acknowledged",
    event_type("snoozed"): "snoozed",
    event_type("unsnoozed"): "no longer snoozed",
    event_type("snooze-ended"): "no longer snoozed",
}
"""The transition in words, by the type of its event."""
_TIMER_TEXTS = {
    "open": "opens, unless the condition changes before",
    "clear": "resolves, unless the condition changes before",
    "snooze": "no longer snoozed, unless it resolves before",
}


@dataclass(frozen=True)
class AlarmExplanation:
    sentence: str
    history: tuple[str, ...]
    facts: dict[str, Any]


async def explain_alarm(
    connection: Connection, alarm: Row, now: datetime, *, names_others: bool = True
) -> AlarmExplanation:
    """Without `names_others` it has nothing of alarms and silences that concern other owners."""
    events = await list_alarm_events(connection, alarm["id"])
    actions = await list_alarm_runs(connection, alarm["id"])
    notifications = await list_notifications(connection, alarm_id=alarm["id"])
    timers = await list_alarm_timers(connection, alarm["id"])
    suppression = None
    if alarm["state"] == "open":
        matched = matched_alarm(alarm)
        suppression = (await Suppressions().of(connection, [matched], now)).get(matched.id)
    if not names_others:
        suppression = None if suppression is None else _unnamed(suppression)
        actions = [_without_holders(row) for row in actions]
        notifications = [_without_holders(row) for row in notifications]
    rule = await rule_over_alarms(connection, alarm["event_rule"])
    references = None if rule is None else await explain_references(connection, rule, alarm["owner"])
    return explain(alarm, events, actions, timers, now, suppression, notifications, references)


def explain(
    alarm: Row,
    events: Sequence[Row],
    actions: Sequence[Row],
    timers: Sequence[Row],
    now: datetime,
    suppression: Suppression | None = None,
    notifications: Sequence[Row] = (),
    references: ReferencesExplanation | None = None,
) -> AlarmExplanation:
    payload = alarm["payload"]
    past = [(alarm["since"], f"the condition began{_value_text(payload)}")]
    past += [(event["ts"], _event_text(event)) for event in events]
    past += [(action["started_at"], _action_text(action)) for action in actions]
    past += [(row["started_at"], _notification_text(row)) for row in notifications]
    # A timer is in the future of the alarm, even if it is overdue, so it comes last.
    future = [(timer["nominal_at"], _timer_text(timer, now)) for timer in timers]
    facts = {
        "alarm": str(alarm["id"]),
        "rule": alarm["event_rule"],
        "owner": alarm["owner"],
        "instance": alarm["instance"],
        "state": alarm["state"],
        "since": instant_text(alarm["since"]),
        "threshold": payload.get("threshold"),
        "correlation": str(alarm["correlation_id"]),
    }
    facts |= {name: payload[name] for name in ("title", "description", "runbook_url") if payload.get(name)}
    if references is not None:
        facts["refers_to"] = references.facts
    held = ""
    if suppression is not None:
        facts["suppressed_by"] = suppression.key
        held = f", and its notifications are held by {suppression.reason}"
    sentence = f"{alarm['event_rule']} of {alarm['owner']!r} is {alarm['state']}{held}"
    message = payload.get("message")
    return AlarmExplanation(
        f"{sentence}: {message}" if message else sentence,
        (
            *(f"{instant_text(at)}  {text}" for at, text in [*sorted(past, key=itemgetter(0)), *future]),
            *(f"refers to: {line}" for line in (references.lines if references is not None else ())),
        ),
        facts,
    )


def _unnamed(suppression: Suppression) -> Suppression:
    texts = {"silence": "a silence", "inhibit": "another alarm"}
    return replace(suppression, reason=texts.get(suppression.kind, suppression.reason), key=suppression.kind)


def _without_holders(row: Row) -> Row:
    """A run or a notification with the kinds of what holds it, without ids."""
    kinds = {"alarm": "another alarm", "silence": "a silence"}
    holders = [str(key).partition(":")[0] for key in row.get("held_by") or ()]
    # An alarm of a group may belong to another owner.
    return {**row, "held_by": sorted({kinds.get(kind, kind) for kind in holders}), "alarms": 1}


def _value_text(payload: dict[str, Any]) -> str:
    return f" at the value {plain_text(payload['value'])}" if payload.get("value") is not None else ""


def _event_text(event: Row) -> str:
    payload = event["payload"]
    text = TRANSITION_TEXTS.get(event["type"], str(event["type"]))
    if payload.get("who"):
        text += f" by {payload['who']}"
    if payload.get("until"):
        text += f" until {instant_text(parse_instant(payload['until']))}"
    if payload.get("note"):
        text += f": {payload['note']}"
    if event["type"] == event_type("resolved") and payload.get("reason"):
        text += f", {payload['reason']}"
    by_clock = f", by the clock in epoch {event['epoch']}" if event["epoch"] is not None else ""
    return f"{text} (seq {event['seq']}{by_clock})"


def _action_text(action: Row) -> str:
    text = f"started {action['name']} by {action['action_rule']}, {action['state']}"
    if action.get("held_by"):
        text += f", held by {', '.join(action['held_by'])}"
    return f"{text}: {action['error']}" if action["error"] else text


def _notification_text(row: Row) -> str:
    """Why a channel was notified about the alarm, or was not."""
    group = f" with {row['alarms']} alarms of its group" if row["alarms"] > 1 else ""
    return f"notification to {row['channel']} by {row['route']}{group} (run {str(row['id'])[:8]}): {status_text(row)}"


def _timer_text(timer: Row, now: datetime) -> str:
    text = _TIMER_TEXTS.get(timer["key"], str(timer["key"]))
    if timer["parked_at"] is not None:
        return f"{text}; the timer is parked: {timer['last_error']}"
    if timer["nominal_at"] > now or timer["key"] == "snooze":
        return text
    watermark = timer["watermark"]
    read = (
        "nothing was read of it yet" if watermark is None else f"it was read until {instant_text(watermark)}"
    )
    return (
        f"{text}; held, because partition {timer['partition']} of the {timer['lane']} lane is behind ({read})"
    )
