"""Alarms and silences in the form of Alertmanager's API, for amtool, Karma and Grafana.

Guarantee: pure. The labels of an alert are those that matchers read: `alertname` (the rule), `owner`,
`severity`, `key`, `instance`, and the labels of the alarm. A silence whose condition was not written
by a client of this API has one matcher, `condition`, with the text of the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from schemas.values.severities import level_name
from tocsin.core.instant import instant_text
from tocsin.protocols.alertmanager_matchers import LabelMatcher, matchers_of

RECEIVER = "tocsin"
VERSION = "0.27.0"
"""The version of Alertmanager whose API is served; clients refuse older ones."""
CONDITION = "condition"
_SHOWN_FOR = timedelta(minutes=5)
Row = Mapping[str, Any]


def alert_view(alarm: Row, suppressed_by: str | None, now: datetime) -> dict[str, Any]:
    """One open alarm. `suppressed_by` is the key of its suppression."""
    kind, _, suppressor = (suppressed_by or "").partition(":")
    payload = alarm["payload"]
    return {
        "annotations": _annotations(alarm, payload),
        "endsAt": instant_text(now + _SHOWN_FOR),
        "fingerprint": alarm_fingerprint(alarm["id"]),
        "receivers": [{"name": RECEIVER}],
        "startsAt": instant_text(alarm["opened_at"] or alarm["since"]),
        "status": {
            "inhibitedBy": [alarm_fingerprint(UUID(suppressor))] if kind == "alarm" else [],
            "silencedBy": [suppressor] if kind == "silence" else [],
            "mutedBy": [],
            "state": "suppressed" if suppressed_by else "active",
        },
        "updatedAt": instant_text(alarm["since"]),
        "generatorURL": str(payload.get("runbook_url") or ""),
        "labels": alert_labels(alarm),
    }


def alert_labels(alarm: Row) -> dict[str, str]:
    payload = alarm["payload"]
    given = payload.get("labels")
    labels = {str(name): str(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
    fields = {
        "alertname": alarm["event_rule"],
        "owner": alarm["owner"],
        "severity": level_name(alarm["severity"]),
        "key": str(payload.get("key") or ""),
        "instance": str(payload.get("instance") or ""),
    }
    return labels | {name: value for name, value in fields.items() if value}


def group_views(alerts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The alerts by their names."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for alert in alerts:
        groups.setdefault(alert["labels"]["alertname"], []).append(alert)
    return [
        {"labels": {"alertname": name}, "receiver": {"name": RECEIVER}, "alerts": members}
        for name, members in sorted(groups.items())
    ]


def silence_view(silence: Row, now: datetime) -> dict[str, Any]:
    ends_at = silence["ended_at"] or silence["ends_at"]
    state = "expired" if ends_at <= now else "pending" if silence["starts_at"] > now else "active"
    return {
        "id": str(silence["id"]),
        "status": {"state": state},
        "updatedAt": instant_text(silence["ended_at"] or silence["created_at"]),
        "comment": silence["reason"] or silence["source"],
        "createdBy": silence["created_by"],
        "startsAt": instant_text(silence["starts_at"]),
        "endsAt": instant_text(ends_at),
        "matchers": [matcher_view(matcher) for matcher in silence_matchers(silence["matcher"])],
    }


def silence_matchers(condition: str) -> Sequence[LabelMatcher]:
    return matchers_of(condition) or [LabelMatcher(CONDITION, condition)]


def matcher_view(matcher: LabelMatcher) -> dict[str, Any]:
    return {
        "name": matcher.name,
        "value": matcher.value,
        "isRegex": matcher.is_regex,
        "isEqual": matcher.is_equal,
    }


def status_view(started_at: datetime, version: str) -> dict[str, Any]:
    return {
        "cluster": {"status": "disabled", "peers": []},
        "config": {"original": ""},
        "uptime": instant_text(started_at),
        "versionInfo": {
            "version": VERSION,
            "revision": f"tocsin {version}",
            "branch": "tocsin",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        },
    }


def alarm_fingerprint(alarm_id: UUID) -> str:
    return alarm_id.hex[:16]


def _annotations(alarm: Row, payload: Mapping[str, Any]) -> dict[str, str]:
    texts = {
        "summary": payload.get("title") or payload.get("message"),
        "description": payload.get("message"),
        "runbook_url": payload.get("runbook_url"),
        "acknowledged_by": alarm["acknowledged_by"],
        "alarm": alarm["id"],
    }
    return {name: str(text) for name, text in texts.items() if text}
