"""Builds the default message about one alarm. Pure: no I/O, and time is an argument.

Guarantee: the subject is `[SEVERITY] name (owner)`, and every other occasion than the opening is
named in it. The body has the message, the state, the value and its threshold, since when, who acted
and why, in every form: text, HTML, Slack blocks and JSON. Unknown facts are left out, except in the
JSON, where they are null. The same facts give the same bytes. Long facts are cut.

`rules.delivery.group_message` builds the message about several alarms.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.delivery import mail_page
from rules.delivery.alarm_facts import (
    UTC_VIEW,
    AlarmFacts,
    MessageKind,
    MessageView,
    label_of,
    measured,
    payload_type,
    subject_of,
    time_between,
)
from rules.delivery.message import Message
from rules.delivery.slack import MAX_FIELDS, fields, header, link_line, section
from schemas.values.plain_number import plain
from timers.recurrence.once import parse_iso
from tocsin.core.instant import instant_text

# Severities outside the default TOCSIN_SEVERITIES have the _OTHER_ values.
_EMOJI = {
    "info": ":large_blue_circle:",
    "warning": ":large_yellow_circle:",
    "average": ":large_orange_circle:",
    "high": ":red_circle:",
    "critical": ":rotating_light:",
    "disaster": ":fire:",
}
_COLOUR = {
    "info": "#2563eb",
    "warning": "#a16207",
    "average": "#c2410c",
    "high": "#dc2626",
    "critical": "#b91c1c",
    "disaster": "#7f1d1d",
}
_RESOLVED_EMOJI, _RESOLVED_COLOUR = ":large_green_circle:", "#15803d"
_OTHER_EMOJI, _OTHER_COLOUR = ":bell:", "#4b5563"
_MAX_TEXT_LENGTH = 2_000
_MAX_LABELS = 10
_MAX_VALUE_LENGTH = 200


def alarm_message(
    facts: AlarmFacts, kind: MessageKind, at: datetime, view: MessageView = UTC_VIEW
) -> Message:
    """Build the message of a transition or a reminder at `at`."""
    rows = _rows(facts, kind, at, view)
    subject = subject_of(facts, kind)
    urls = links_of(facts, view)
    texts = [text for text in (cut(facts.message), facts.description) if text]
    return Message(
        subject,
        _text(subject, texts, {**rows, **urls, **_identity(facts)}),
        html=mail_page.page(
            colour_of(facts.severity, kind),
            label_of(facts.severity, kind),
            subject.partition("] ")[2],
            [
                mail_page.paragraph(cut(facts.message)),
                mail_page.paragraph(facts.description, dim=True),
                mail_page.fact_table({**rows, **_identity(facts)}),
                mail_page.links(urls),
            ],
        ),
        blocks=_blocks(f"{emoji_of(facts.severity, kind)} {subject}", texts, rows, urls),
        payload=alarm_payload(facts, kind, at, view),
    )


def alarm_payload(
    facts: AlarmFacts, kind: MessageKind, at: datetime, view: MessageView = UTC_VIEW
) -> dict[str, Any]:
    """The body of a webhook: values keep their types, and an unknown fact is null."""
    since, until = facts.began_at, facts.resolved_at if not facts.is_open else None
    return {
        "type": payload_type(kind),
        "state": facts.state,
        "alarm_id": str(facts.alarm_id) if facts.alarm_id else None,
        "rule": facts.rule,
        "title": facts.title,
        "severity": facts.severity,
        "owner": facts.owner,
        "instance": facts.instance,
        "key": facts.key,
        "value": plain(facts.value),
        "first_value": plain(facts.first_value),
        "unit": facts.unit,
        "threshold": facts.threshold,
        "labels": dict(facts.labels),
        "since": instant_text(since) if since else None,
        "resolved_at": instant_text(until) if until else None,
        "at": instant_text(at),
        "duration_s": max(0, int(((until or at) - since).total_seconds())) if since else None,
        "message": cut(facts.message),
        "description": facts.description,
        "runbook_url": facts.runbook_url,
        "link": view.link(facts.alarm_id),
        **({"acknowledge_url": view.acknowledge_url} if view.acknowledge_url and facts.is_open else {}),
        "acknowledged_by": facts.acknowledged_by,
        "snoozed_by": facts.snoozed_by,
        "snoozed_until": _json_instant(facts.snoozed_until),
        "resolved_by": facts.resolved_by,
        "reason": _reason(facts, kind),
        "note": cut(facts.note),
    }


def colour_of(severity: str | None, kind: MessageKind) -> str:
    return _RESOLVED_COLOUR if kind == "resolved" else _COLOUR.get(severity or "", _OTHER_COLOUR)


def emoji_of(severity: str | None, kind: MessageKind) -> str:
    return _RESOLVED_EMOJI if kind == "resolved" else _EMOJI.get(severity or "", _OTHER_EMOJI)


def links_of(facts: AlarmFacts, view: MessageView) -> dict[str, str]:
    urls = {
        "Acknowledge": view.acknowledge_url if facts.is_open else None,
        "Open alarm": view.link(facts.alarm_id),
        "Runbook": facts.runbook_url,
    }
    return {title: url for title, url in urls.items() if url}


def cut(text: object, length: int = _MAX_TEXT_LENGTH) -> str | None:
    if text in (None, ""):
        return None
    shown = str(text)
    return shown if len(shown) <= length else f"{shown[: length - 3]}..."


def value_with_first(facts: AlarmFacts) -> str:
    """`71.25 °C (first 66 °C)`, or the value alone if it has not changed since the beginning."""
    value = cut(measured(facts.value, facts.unit), _MAX_VALUE_LENGTH) or ""
    first = cut(measured(facts.first_value, facts.unit), _MAX_VALUE_LENGTH) or ""
    return f"{value} (first {first})" if value and first and first != value else value


def _rows(facts: AlarmFacts, kind: MessageKind, at: datetime, view: MessageView) -> dict[str, str]:
    """Titles and values for readers, the most important first."""
    since, ended = facts.began_at, facts.resolved_at or at
    until = _instant(facts.snoozed_until)
    lasting = {"Lasted": time_between(since, ended)} if since and not facts.is_open else {}
    if since and facts.is_open and at > since and kind != "opened":
        lasting = {"Open for": time_between(since, at)}
    rows = {
        "State": facts.status,
        "Severity": facts.severity,
        "Owner": facts.owner,
        "Series": facts.key,
        "Value": value_with_first(facts),
        "Threshold": facts.threshold,
        "Since": view.instant(since) if since else None,
        "Resolved": view.instant(ended) if not facts.is_open else None,
        **lasting,
        "Snoozed by": facts.snoozed_by if kind in ("snoozed", "unsnoozed", "snooze-ended") else None,
        "Snoozed until": view.instant(until) if until and kind == "snoozed" else None,
        "Reason": cut(_reason(facts, kind), _MAX_VALUE_LENGTH),
        "Note": cut(facts.note),
        "Labels": _labels(facts.labels),
    }
    return {title: str(value) for title, value in rows.items() if value not in (None, "")}


def _identity(facts: AlarmFacts) -> dict[str, str]:
    """The rule, if a title hides it, and the id of the alarm."""
    rows = {"Rule": facts.rule if facts.title else None, "Alarm": facts.alarm_id}
    return {title: str(value) for title, value in rows.items() if value}


def _reason(facts: AlarmFacts, kind: MessageKind) -> str | None:
    if facts.reason is None and kind == "reminder":
        return "not acknowledged"
    return facts.reason


def _labels(labels: Mapping[str, Any]) -> str:
    shown = [f"{name}={cut(value, 60) or ''}" for name, value in sorted(labels.items())[:_MAX_LABELS]]
    more = [f"and {len(labels) - _MAX_LABELS} more"] if len(labels) > _MAX_LABELS else []
    return ", ".join([*shown, *more])


def _text(subject: str, texts: list[str], rows: Mapping[str, str]) -> str:
    width = max(map(len, rows), default=0) + 2
    table = "\n".join(f"{title:<{width}}{value}" for title, value in rows.items())
    return "\n\n".join(part for part in (subject, *texts, table) if part) + "\n"


def _blocks(
    title: str, texts: list[str], rows: dict[str, str], urls: Mapping[str, str]
) -> list[dict[str, Any]]:
    pairs = list(rows.items())
    return [
        header(title),
        *[section(text) for text in texts],
        *[fields(dict(pairs[begin : begin + MAX_FIELDS])) for begin in range(0, len(pairs), MAX_FIELDS)],
        *([link_line(urls)] if urls else []),
    ]


def _instant(value: datetime | str | None) -> datetime | None:
    return parse_iso(value) if isinstance(value, str) else value


def _json_instant(value: datetime | str | None) -> str | None:
    at = _instant(value)
    return instant_text(at) if at else None
