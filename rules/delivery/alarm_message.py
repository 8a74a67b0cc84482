"""Builds the default message about an alarm. Pure: no I/O, and time is an argument.

Guarantee: the subject is `[SEVERITY] rule (owner)`, short enough for the lock screen of a phone.
The body has the message, the value, the threshold, the owner and the start time, in every form:
text, HTML, Slack blocks and JSON. Unknown facts are left out, except in the JSON, where they are
null. The same facts give the same bytes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from html import escape
from typing import Any

from rules.delivery.message import Message
from rules.delivery.slack import fields, header, section
from schemas.values.duration import format_duration
from schemas.wire.alarm_events import RuleTransition, event_type
from timers.recurrence.once import parse_iso
from tocsin.core.instant import instant_text, utc_text

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
    "warning": "#ca8a04",
    "average": "#ea580c",
    "high": "#dc2626",
    "critical": "#b91c1c",
    "disaster": "#7f1d1d",
}
_RESOLVED_EMOJI, _RESOLVED_COLOUR = ":large_green_circle:", "#16a34a"
_OTHER_EMOJI, _OTHER_COLOUR = ":bell:", "#6b7280"


def alarm_message(facts: Mapping[str, Any], transition: RuleTransition, at: datetime) -> Message:
    """Build the message of a transition at `at`.

    `facts` has rule, severity (its name), owner, key, value, threshold (a text), since (an instant
    or its text), message, alarm_id. Any of them but the rule may be missing."""
    since = facts.get("since")
    facts = {**facts, "since": parse_iso(since) if isinstance(since, str) else since}
    rows = _rows(facts, transition, at)
    subject = _subject(facts, transition)
    return Message(
        subject,
        _text(subject, facts, rows),
        html=_html(subject, facts, rows, transition),
        blocks=_blocks(subject, facts, rows, transition),
        payload=_payload(facts, transition, at),
    )


def _subject(facts: Mapping[str, Any], transition: RuleTransition) -> str:
    label = "RESOLVED" if transition == "resolved" else str(facts.get("severity") or "alarm").upper()
    owner = f" ({facts['owner']})" if facts.get("owner") else ""
    return f"[{label}] {facts['rule']}{owner}"


def _rows(facts: Mapping[str, Any], transition: RuleTransition, at: datetime) -> dict[str, str]:
    """Titles and values for readers, the most important first."""
    since: datetime | None = facts.get("since")
    rows = {
        "State": transition,
        "Severity": facts.get("severity"),
        "Owner": facts.get("owner"),
        "Key": facts.get("key"),
        "Value": _value_text(facts.get("value")),
        "Threshold": facts.get("threshold"),
        "Since": utc_text(since) if since else None,
        "Resolved": utc_text(at) if transition == "resolved" else None,
        "Lasted": _duration(since, at) if transition == "resolved" and since else None,
        "Alarm": facts.get("alarm_id"),
    }
    return {title: str(value) for title, value in rows.items() if value not in (None, "")}


def _text(subject: str, facts: Mapping[str, Any], rows: dict[str, str]) -> str:
    width = max(map(len, rows)) + 2
    table = "\n".join(f"{title:<{width}}{value}" for title, value in rows.items())
    return "\n\n".join(part for part in (subject, str(facts.get("message") or ""), table) if part) + "\n"


def _html(subject: str, facts: Mapping[str, Any], rows: dict[str, str], transition: RuleTransition) -> str:
    colour = (
        _RESOLVED_COLOUR
        if transition == "resolved"
        else _COLOUR.get(facts.get("severity", ""), _OTHER_COLOUR)
    )
    message = f"<p>{escape(str(facts['message']))}</p>\n" if facts.get("message") else ""
    table = "\n".join(
        f'<tr><td style="padding:2px 16px 2px 0;color:#6b7280">{escape(title)}</td><td>{escape(value)}</td></tr>'
        for title, value in rows.items()
    )
    return (
        '<div style="font-family:sans-serif;font-size:14px;color:#111827">\n'
        f'<h2 style="margin:0;padding-left:10px;border-left:6px solid {colour};font-size:18px">'
        f"{escape(subject)}</h2>\n{message}<table>\n{table}\n</table>\n</div>\n"
    )


def _blocks(
    subject: str, facts: Mapping[str, Any], rows: dict[str, str], transition: RuleTransition
) -> list[dict[str, Any]]:
    emoji = (
        _RESOLVED_EMOJI if transition == "resolved" else _EMOJI.get(facts.get("severity", ""), _OTHER_EMOJI)
    )
    blocks = [header(f"{emoji} {subject}"), fields(rows)]
    return [*blocks, section(str(facts["message"]))] if facts.get("message") else blocks


def _payload(facts: Mapping[str, Any], transition: RuleTransition, at: datetime) -> dict[str, Any]:
    """The body of a webhook: values keep their types, and an unknown fact is null."""
    since: datetime | None = facts.get("since")
    return {
        "type": event_type(transition),
        "alarm_id": str(facts["alarm_id"]) if facts.get("alarm_id") else None,
        "rule": facts["rule"],
        "severity": facts.get("severity"),
        "owner": facts.get("owner"),
        "key": facts.get("key"),
        "value": facts.get("value"),
        "threshold": facts.get("threshold"),
        "since": instant_text(since) if since else None,
        "at": instant_text(at),
        "message": facts.get("message"),
    }


def _value_text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else repr(value)
    return None if value is None else str(value)


def _duration(since: datetime, until: datetime) -> str:
    """The duration to the second, at least zero: a clock may have gone back."""
    whole = timedelta(seconds=max(0, int((until - since).total_seconds())))
    return format_duration(whole)
