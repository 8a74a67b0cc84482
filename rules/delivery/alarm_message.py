"""Builds the default message about an alarm. Pure: no I/O, and time is an argument.

Guarantee: the subject is `[SEVERITY] rule (owner)`, short enough for the lock screen of a phone.
The body has the message, the value, the threshold, the owner and the start time, in every form:
text, HTML, Slack blocks and JSON. Unknown facts are left out, except in the JSON, where they are
null. The same facts give the same bytes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any
from uuid import UUID

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


@dataclass(frozen=True, kw_only=True)
class AlarmFacts:
    """The facts of an alarm that a message shows. Any of them but the rule may be unknown."""

    rule: str
    severity: str | None = None
    """The name of the level."""
    owner: str | None = None
    key: str | None = None
    value: object = None
    threshold: str | None = None
    """The condition in words, such as `value > 65.0`."""
    since: datetime | str | None = None
    """An instant, or its text in an event."""
    message: str | None = None
    alarm_id: UUID | str | None = None

    @property
    def began_at(self) -> datetime | None:
        return parse_iso(self.since) if isinstance(self.since, str) else self.since


def alarm_message(facts: AlarmFacts, transition: RuleTransition, at: datetime) -> Message:
    """Build the message of a transition at `at`."""
    rows = _rows(facts, transition, at)
    subject = _subject(facts, transition)
    return Message(
        subject,
        _text(subject, facts, rows),
        html=_html(subject, facts, rows, transition),
        blocks=_blocks(subject, facts, rows, transition),
        payload=_payload(facts, transition, at),
    )


def _subject(facts: AlarmFacts, transition: RuleTransition) -> str:
    label = "RESOLVED" if transition == "resolved" else str(facts.severity or "alarm").upper()
    owner = f" ({facts.owner})" if facts.owner else ""
    return f"[{label}] {facts.rule}{owner}"


def _rows(facts: AlarmFacts, transition: RuleTransition, at: datetime) -> dict[str, str]:
    """Titles and values for readers, the most important first."""
    since = facts.began_at
    rows = {
        "State": transition,
        "Severity": facts.severity,
        "Owner": facts.owner,
        "Key": facts.key,
        "Value": _value_text(facts.value),
        "Threshold": facts.threshold,
        "Since": utc_text(since) if since else None,
        "Resolved": utc_text(at) if transition == "resolved" else None,
        "Lasted": _duration(since, at) if transition == "resolved" and since else None,
        "Alarm": facts.alarm_id,
    }
    return {title: str(value) for title, value in rows.items() if value not in (None, "")}


def _text(subject: str, facts: AlarmFacts, rows: dict[str, str]) -> str:
    width = max(map(len, rows)) + 2
    table = "\n".join(f"{title:<{width}}{value}" for title, value in rows.items())
    return "\n\n".join(part for part in (subject, str(facts.message or ""), table) if part) + "\n"


def _html(subject: str, facts: AlarmFacts, rows: dict[str, str], transition: RuleTransition) -> str:
    colour = (
        _RESOLVED_COLOUR if transition == "resolved" else _COLOUR.get(facts.severity or "", _OTHER_COLOUR)
    )
    message = f"<p>{escape(str(facts.message))}</p>\n" if facts.message else ""
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
    subject: str, facts: AlarmFacts, rows: dict[str, str], transition: RuleTransition
) -> list[dict[str, Any]]:
    emoji = _RESOLVED_EMOJI if transition == "resolved" else _EMOJI.get(facts.severity or "", _OTHER_EMOJI)
    blocks = [header(f"{emoji} {subject}"), fields(rows)]
    return [*blocks, section(str(facts.message))] if facts.message else blocks


def _payload(facts: AlarmFacts, transition: RuleTransition, at: datetime) -> dict[str, Any]:
    """The body of a webhook: values keep their types, and an unknown fact is null."""
    since = facts.began_at
    return {
        "type": event_type(transition),
        "alarm_id": str(facts.alarm_id) if facts.alarm_id else None,
        "rule": facts.rule,
        "severity": facts.severity,
        "owner": facts.owner,
        "key": facts.key,
        "value": facts.value,
        "threshold": facts.threshold,
        "since": instant_text(since) if since else None,
        "at": instant_text(at),
        "message": facts.message,
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
