"""Builds the messages and payloads of the events of an alarm.

Guarantee: a message is one sentence that names the series, the owner, the value, the threshold and
for how long. The rule, the severity and the instants are not repeated in it: whatever shows a
message has them as fields of their own. Live workers, rule tests and backtests write the same text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rules.engine.effects import MessageFailed
from rules.engine.inputs import Value
from rules.engine.rule import Rule
from rules.engine.shorthands import STALE_THRESHOLD, number_text
from rules.engine.state import FiringSeries
from rules.language.templates import fill_text
from schemas.values.duration import format_duration
from schemas.values.series_key import base_key
from schemas.values.severities import level_name
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_MAX_TEXT_LENGTH = 100


def opened_payload(
    rule: Rule, owner: str, instance: str, key: str, firing: FiringSeries
) -> tuple[dict[str, Any], MessageFailed | None]:
    """The payload of `alarm-opened`.

    A `message` that cannot be filled is replaced by the default text.
    """
    threshold = STALE_THRESHOLD if firing.cause == "no_data" else rule.threshold
    payload: dict[str, Any] = {
        "threshold": threshold,
        "since": instant_text(firing.since),
        "labels": dict(firing.labels),
        "instance": instance,
    }
    if key:
        payload |= {
            "key": base_key(key),
            "value": firing.value,
            "unit": rule.types.unit(key),
            "series": [key],
        }
    payload |= _annotations(rule)
    if firing.event_id:
        payload |= {"event_id": firing.event_id, "event_type": firing.event_type}
    message, failed = None, None
    try:
        message = _custom_text(rule, owner, payload)
    except InvalidInput as error:
        failed = MessageFailed(str(error))
    payload["message"] = message or _opened_text(rule, owner, key, firing, threshold)
    return payload, failed


def series_of_payload(payload: Mapping[str, Any]) -> list[str]:
    """The keys of the series that fire, of the payload of an alarm; `[""]` if it is over events."""
    return list(payload.get("series") or [""])


def resolved_payload(
    opened: dict[str, Any], *, reason: str, message: str, opened_at: datetime, **changed: Value | None
) -> dict[str, Any]:
    """The payload of `alarm-resolved`: the one of `alarm-opened` with new values and the reason."""
    return {
        **opened,
        **{name: value for name, value in changed.items() if name in opened},
        "reason": reason,
        "message": message,
        "opened_at": instant_text(opened_at),
    }


def cleared_text(rule: Rule, owner: str, key: str, value: Value | None, at: datetime) -> str:
    if not key:
        return f"{owner or 'the condition'} is clear"
    return f"{key}{_of(owner)} is clear ({_measured(rule, key, value)})"


def stale_text(rule: Rule, owner: str, key: str, value: Value | None, at: datetime) -> str:
    return f"{key}{_of(owner)} is stale and counts as clear (last {_measured(rule, key, value)})"


def ended_text(rule: str, owner: str, why: str) -> str:
    return f"{owner or rule}: {why}"


def _custom_text(rule: Rule, owner: str, payload: dict[str, Any]) -> str | None:
    """The text of the document's `message`; None if it has none."""
    if rule.document.message is None:
        return None
    facts = {"key": "", "value": None, "unit": "", **payload, "rule": rule.name, "owner": owner}
    return fill_text(rule.document.message, {**facts, "severity": level_name(rule.severity)})


def _opened_text(rule: Rule, owner: str, key: str, firing: FiringSeries, threshold: str) -> str:
    if not key:
        return f"{firing.event_type}{_of(owner)}{rule.sustain_text}"
    series, value = f"{key}{_of(owner)}", _measured(rule, key, firing.value)
    if firing.age_s:
        age = format_duration(timedelta(seconds=round(firing.age_s)))
        return f"{series} has sent no data for {age} (last {value})"
    verb = "meets" if rule.document.fire is not None else "is"
    return f"{series} {verb} {threshold}{rule.sustain_text} ({value})"


def _annotations(rule: Rule) -> dict[str, str]:
    """The texts of the document for people, as far as it has them."""
    document = rule.document
    texts = {
        "title": document.title,
        "description": document.description,
        "runbook_url": document.runbook_url,
    }
    return {name: text for name, text in texts.items() if text}


def value_text(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT_LENGTH else f"{value[:_MAX_TEXT_LENGTH]}..."
    return json.dumps(value) if isinstance(value, bool) else number_text(value)


def _measured(rule: Rule, key: str, value: Value | None) -> str:
    """The value with its unit and window: `avg over 1h 71.2 °C`."""
    unit = rule.types.unit(key)
    text = f"{value_text(value)} {unit}" if unit else value_text(value)
    if rule.window is None:
        return text
    return f"{rule.window.reduce} over {format_duration(rule.window.over)} {text}"


def _of(owner: str) -> str:
    return f" of {owner}" if owner else ""
