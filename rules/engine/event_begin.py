"""The entry of an event that fires, among the series of its rule."""

from __future__ import annotations

from collections.abc import Mapping

from rules.engine.inputs import EventSeen
from rules.engine.rule import Rule
from rules.engine.state import FiringSeries

_NO_LABELS: dict[str, str] = {}


def begun_by(rule: Rule, event: EventSeen) -> FiringSeries:
    payload = event.facts.get("payload")
    return FiringSeries(
        since=event.at,
        due_at=event.at + rule.sustain,
        cause="fired",
        value=None,
        labels=_NO_LABELS,
        event_id=str(event.facts.get("id") or ""),
        event_type=str(event.facts.get("type") or ""),
        severity=severity_of_event(rule, event),
        payload=dict(payload) if isinstance(payload, Mapping) else {},
    )


def severity_of_event(rule: Rule, event: EventSeen) -> int:
    severity = event.facts.get("severity")
    return int(severity) if rule.takes_severity_of_event and severity else rule.severity
