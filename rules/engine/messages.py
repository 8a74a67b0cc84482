"""Builds the messages and payloads of the events of an alarm.

Guarantee: a message is one sentence that names the series, the owner, the value, the threshold and
for how long. The rule, the severity and the instants are not repeated in it: whatever shows a
message has them as fields of their own. Live workers, rule tests and backtests write the same text.
The text of an alarm with several series names those that fire.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rules.engine.effects import Alarm, Cause, MessageFailed
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
_MAX_EVENT_PAYLOAD = 8_192
_SHOWN_SERIES = 5
MAX_SERIES = 100
"""Series that a payload lists."""


def opened_payload(
    rule: Rule,
    owner: str,
    instance: str,
    key: str,
    firing: FiringSeries,
    series: Sequence[str],
    severity: int,
) -> tuple[dict[str, Any], MessageFailed | None]:
    """The payload of `alarm-opened` and `alarm-changed`: about the series of `key`, among `series`.

    A `message` that cannot be filled is replaced by the default text.
    """
    threshold = (
        STALE_THRESHOLD if firing.cause == "no_data" else rule.threshold_of(firing.severity or severity)
    )
    if rule.is_heartbeat:
        threshold = firing.cause
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
            "first_value": firing.first_value,
            "unit": rule.types.unit(key),
            "series": list(series[:MAX_SERIES]),
            "series_count": len(series),
        }
    payload |= _annotations(rule)
    if rule.is_heartbeat:
        payload["heartbeat"] = {name: fact for name, fact in firing.payload.items() if name != "message"}
    if firing.event_id:
        payload |= {"event_id": firing.event_id, "event_type": firing.event_type}
        if len(json.dumps(firing.payload)) <= _MAX_EVENT_PAYLOAD:
            payload["payload"] = firing.payload
    message, failed = None, None
    try:
        message = _custom_text(rule, owner, payload, firing, severity)
    except InvalidInput as error:
        failed = MessageFailed(str(error))
    payload["message"] = message or _opened_text(rule, owner, key, firing, threshold, series)
    return payload, failed


def since_text(since: datetime) -> str:
    return instant_text(since)


def described_alarm(alarm: Alarm) -> Alarm:
    """The alarm with everything that its payload, as it was stored, says about it."""
    payload = alarm.payload
    series = tuple(payload.get("series") or ("",))
    lead = next((key for key in series if base_key(key) == payload.get("key", "")), series[0])
    cause: Cause = "no_data" if payload.get("threshold") == STALE_THRESHOLD else "fired"
    if "heartbeat" in payload:
        cause = payload["heartbeat"]["cause"]
    return replace(alarm, lead=lead, series=series, cause=cause, changes=int(payload.get("change", 0)))


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
    if rule.is_heartbeat:
        return f"{owner} succeeded"
    if not key and rule.count is not None:
        return f"fewer than {rule.count} events{_of(owner)} in {format_duration(rule.count_over)}"
    if rule.composite is not None:
        return f"{rule.composite.text} no longer holds{f' for {owner}' if owner else ''}"
    if not key:
        return f"{owner or 'the condition'} is clear"
    return f"{key}{_of(owner)} is clear ({_measured(rule, key, value)})"


def stale_text(rule: Rule, owner: str, key: str, value: Value | None, at: datetime) -> str:
    return f"{key}{_of(owner)} is stale and counts as clear (last {_measured(rule, key, value)})"


def inactive_text(owner: str, key: str, why: str) -> str:
    return f"{key}{_of(owner)}: {why}"


def ended_text(rule: str, owner: str, why: str) -> str:
    return f"{owner or rule}: {why}"


def _custom_text(
    rule: Rule, owner: str, payload: dict[str, Any], firing: FiringSeries, severity: int
) -> str | None:
    """The text of the document's `message`; None if it has none."""
    if rule.document.message is None:
        return None
    nothing = {**dict.fromkeys(("key", "unit", "event_type"), ""), "value": None, "first_value": None}
    facts = {**nothing, "series": [], **payload, "payload": firing.payload, "rule": rule.name, "owner": owner}
    return fill_text(rule.document.message, {**facts, "severity": level_name(severity)})


def _opened_text(
    rule: Rule, owner: str, key: str, firing: FiringSeries, threshold: str, series: Sequence[str]
) -> str:
    if rule.is_heartbeat:
        return str(firing.payload["message"])
    if not key and rule.count is not None:
        counted = f"{rule.count} events in {format_duration(rule.count_over)}"
        return f"{counted}{_of(owner)}, the last one {firing.event_type}"
    if rule.composite is not None:
        return f"{_open_text(firing, owner)}{rule.sustain_text}"
    if not key:
        return f"{firing.event_type}{_of(owner)}{rule.sustain_text}"
    text, value = f"{key}{_of(owner)}", _measured(rule, key, firing.value)
    others = _others_text(key, series)
    if firing.age_s:
        age = format_duration(timedelta(seconds=round(firing.age_s)))
        return f"{text} has sent no data for {age} (last {value}){others}"
    verb = "meets" if rule.document.fire is not None else "is"
    return f"{text} {verb} {threshold}{rule.sustain_text} ({value}){others}"


def _open_text(firing: FiringSeries, owner: str) -> str:
    """`flow-low and pump-hot of pump-1 are open`: the rules whose alarms make a rule fire."""
    rules = sorted({alarm["rule"] for alarm in firing.payload.get("alarms", ())})
    shown, more = rules[:_SHOWN_SERIES], len(rules) - _SHOWN_SERIES
    names = [*shown, f"{more} more"] if more > 0 else shown
    if len(names) < 2:
        return f"{', '.join(names)}{_of(owner)} is open"
    return f"{', '.join(names[:-1])} and {names[-1]}{_of(owner)} are open"


def _others_text(key: str, series: Sequence[str]) -> str:
    """`, and disk.b.used, disk.c.used and 3 more`: the other series that fire."""
    others = [other for other in series if other != key]
    if not others:
        return ""
    shown, more = others[:_SHOWN_SERIES], len(others) - _SHOWN_SERIES
    return f", and {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


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
    if value is None and rule.window is not None:
        return f"no {rule.window.reduce} over {format_duration(rule.window.over)}"
    unit = rule.types.unit(key)
    text = f"{value_text(value)} {unit}" if unit else value_text(value)
    if rule.window is None:
        return text
    return f"{rule.window.reduce} over {format_duration(rule.window.over)} {text}"


def _of(owner: str) -> str:
    return f" of {owner}" if owner else ""
