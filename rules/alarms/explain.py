"""Why an alarm is in the state it is in, from the records: when it began, its edges, who did what, what it started.

Guarantee: every line of the history cites the seq of its event; nothing is computed that the records do not say.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from rules.alarms.queries import Row, actions_of, events_of
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.instant import instant_text, parse_instant

EDGES = {
    "alarm-opened": "opened",
    "alarm-resolved": "resolved",
    "alarm-acknowledged": "acknowledged",
    "alarm-snoozed": "snoozed",
    "alarm-unsnoozed": "speaks again",
    "alarm-snooze-ended": "speaks again",
}
"""What happens to an alarm, by the type of its event, in words."""
_NEXT = {"open": "opens", "clear": "resolves", "snooze": "speaks again"}


@dataclass(frozen=True)
class Explained:
    sentence: str
    history: tuple[str, ...]
    facts: dict[str, Any]


async def explain_alarm(connection: Connection, alarm: Row, now: datetime) -> Explained:
    events = await events_of(connection, alarm["id"])
    actions = await actions_of(connection, alarm["id"])
    sustains = await _sustains(connection, alarm["id"])
    return explained(alarm, events, actions, sustains, now)


async def _sustains(connection: Connection, alarm_id: uuid.UUID) -> list[Row]:
    return await fetch_dicts(connection, "rules.alarms/list_alarm_timers", {"alarm_id": alarm_id})


def explained(
    alarm: Row, events: Sequence[Row], actions: Sequence[Row], sustains: Sequence[Row], now: datetime
) -> Explained:
    says = alarm["payload"]
    told = [(alarm["since"], f"the condition began{_value(says)}")]
    told += [(event["ts"], _edge(event)) for event in events]
    told += [(action["started_at"], _action(action)) for action in actions]
    # What is to come lies behind what was, also where it is overdue.
    told = sorted(told, key=itemgetter(0)) + [(one["nominal_at"], _sustain(one, now)) for one in sustains]
    facts = {
        "alarm": str(alarm["id"]),
        "rule": alarm["event_rule"],
        "owner": alarm["owner"],
        "state": alarm["state"],
        "since": instant_text(alarm["since"]),
        "threshold": says.get("threshold"),
        "correlation": str(alarm["correlation_id"]),
    }
    sentence = f"{alarm['event_rule']} of {alarm['owner']!r} is {alarm['state']}"
    message = says.get("message")
    return Explained(
        f"{sentence}: {message}" if message else sentence,
        tuple(f"{instant_text(at)}  {text}" for at, text in told),
        facts,
    )


def _value(says: dict[str, Any]) -> str:
    return f" at the value {says['value']}" if says.get("value") is not None else ""


def _edge(event: Row) -> str:
    payload = event["payload"]
    text = str(EDGES.get(event["type"], event["type"]))
    if payload.get("who"):
        text += f" by {payload['who']}"
    if payload.get("until"):
        text += f" until {instant_text(parse_instant(payload['until']))}"
    if payload.get("note"):
        text += f": {payload['note']}"
    if event["type"] == "alarm-resolved" and payload.get("reason"):
        text += f", {payload['reason']}"
    decided = f", by the clock in epoch {event['epoch']}" if event["epoch"] is not None else ""
    return f"{text} (seq {event['seq']}{decided})"


def _action(action: Row) -> str:
    text = f"started {action['name']} by {action['action_rule']}, {action['state']}"
    return f"{text}: {action['error']}" if action["error"] else text


def _sustain(one: Row, now: datetime) -> str:
    does = _NEXT.get(one["key"], one["key"])
    text = f"{does}, unless the condition changes before"
    if one["parked_at"] is not None:
        return f"{text}; the timer is parked: {one['last_error']}"
    if one["nominal_at"] > now or one["key"] == "snooze":
        return text
    read = one["watermark"]
    behind = "nothing was read of it yet" if read is None else f"it was read until {instant_text(read)}"
    return (
        f"{text}; held, because partition {one['partition']} of the {one['lane']} lane is behind ({behind})"
    )
