"""What an alarm says: to people in words, to programs as the payload of its events.

Guarantee: a message can be read on its own: which rule, which series of whom, what it was, against which
threshold, for how long and since when. It speaks of what was known when the alarm began, so live, test and
backtest say the same.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from rules.engine.effects import MessageFailed
from rules.engine.inputs import Value
from rules.engine.rule import Rule
from rules.engine.shorthands import number_text
from rules.engine.state import FiringSeries
from rules.language.templates import fill_text
from schemas.values.duration import format_duration
from schemas.values.severities import level_name
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_LONGEST_SHOWN = 100


def opened_payload(
    rule: Rule, owner: str, key: str, current: FiringSeries
) -> tuple[dict[str, Any], MessageFailed | None]:
    """The payload of `alarm-opened`. A `message` that cannot be filled is replaced by the default text."""
    threshold = "silent" if current.cause == "no_data" else rule.threshold
    payload: dict[str, Any] = {
        "threshold": threshold,
        "since": instant_text(current.since),
        "labels": dict(current.labels),
    }
    if key:
        payload |= {"key": key, "value": current.value, "unit": _unit(rule, key)}
    if current.event_id:
        payload |= {"event_id": current.event_id, "event_type": current.event_type}
    message, failed = None, None
    try:
        message = _custom_text(rule, owner, payload)
    except InvalidInput as error:
        failed = MessageFailed(str(error))
    payload["message"] = message or _opened_text(rule, owner, key, current, threshold)
    return payload, failed


def resolved_payload(
    opened: dict[str, Any], *, reason: str, message: str, opened_at: datetime, **changed: Value | None
) -> dict[str, Any]:
    """The facts of the alarm, what `changed` of them, and how it ended."""
    return {
        **opened,
        **{name: value for name, value in changed.items() if name in opened},
        "reason": reason,
        "message": message,
        "opened_at": instant_text(opened_at),
    }


def cleared_text(rule: Rule, owner: str, key: str, value: Value | None, at: datetime) -> str:
    if not key:
        return f"{rule.name}: clear{_of(owner)} (at {instant_text(at)})"
    return f"{rule.name}: {key}{_of(owner)} is clear ({_shown(rule, key, value)} at {instant_text(at)})"


def silent_text(rule: Rule, owner: str, key: str, value: Value | None, at: datetime) -> str:
    last = _shown(rule, key, value)
    return f"{rule.name}: {key}{_of(owner)} is silent and counts as clear (last {last}, stale {instant_text(at)})"


def ended_text(rule: str, owner: str, why: str) -> str:
    return f"{rule}{_of(owner)}: {why}"


def _custom_text(rule: Rule, owner: str, payload: dict[str, Any]) -> str | None:
    """The text of the document's `message`; None if it has none."""
    if rule.document.message is None:
        return None
    facts = {"key": "", "value": None, "unit": "", **payload, "rule": rule.name, "owner": owner}
    return fill_text(rule.document.message, {**facts, "severity": level_name(rule.severity)})


def _opened_text(rule: Rule, owner: str, key: str, current: FiringSeries, threshold: str) -> str:
    if not key:
        return f"{rule.name}: {current.event_type}{_of(owner)}{rule.held_text} (at {instant_text(current.since)})"
    what = f"{rule.name}: {key}{_of(owner)}"
    last = _shown(rule, key, current.value)
    if current.age_s:
        last_arrival = current.since - timedelta(seconds=current.age_s)
        return f"{what} is silent since {instant_text(last_arrival)} (last {last})"
    verb = "meets" if rule.document.fire is not None else "is"
    return f"{what} {verb} {threshold}{rule.held_text} ({last} at {instant_text(current.since)})"


def value_text(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}..."
    return json.dumps(value) if isinstance(value, bool) else number_text(value)


def _shown(rule: Rule, key: str, value: Value | None) -> str:
    unit = _unit(rule, key)
    text = f"{value_text(value)} {unit}" if unit else value_text(value)
    if rule.window is None:
        return text
    return f"{rule.window.reduce} over {format_duration(rule.window.over)} {text}"


def _unit(rule: Rule, key: str) -> str:
    found = rule.types.of(key) if key else None
    return "" if found is None else found.unit


def _of(owner: str) -> str:
    return f" of {owner}" if owner else ""
