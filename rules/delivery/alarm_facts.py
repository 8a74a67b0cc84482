"""The facts of an alarm that a message shows, and how they are written. Pure: no I/O.

Guarantee: any fact but the rule may be unknown, and an unknown fact is left out. Instants are
written in the timezone of the channel, to the second. Numbers have no trailing `.0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from schemas.values.duration import format_duration
from schemas.values.plain_number import plain_text
from schemas.values.severities import level_name, severities
from schemas.wire.alarm_events import Transition
from timers.recurrence.once import parse_iso
from timers.recurrence.zones import zone

MessageKind = Literal[Transition, "changed", "reminder", "silence-ended"]
"""The occasion of a message: a transition, or a reminder of an alarm that is still open.

`reminder` comes from `repeat`. `silence-ended` follows the end of a silence, a maintenance window or
an inhibition.
"""
KINDS: tuple[MessageKind, ...] = (
    *("opened", "changed", "resolved", "acknowledged", "snoozed", "unsnoozed", "snooze-ended"),
    *("reminder", "silence-ended"),
)
_TYPES: dict[MessageKind, str] = {"reminder": "alarm-reminder", "silence-ended": "alarm-reminder"}
_OCCASIONS: dict[MessageKind, str] = {
    "opened": "",
    "changed": "changed",
    "acknowledged": "acknowledged",
    "snoozed": "snoozed",
    "unsnoozed": "snooze ended",
    "snooze-ended": "snooze ended",
    "reminder": "still open",
    "silence-ended": "silence ended",
}


def payload_type(kind: MessageKind) -> str:
    """The `type` in the body of a webhook: the type of the event itself."""
    return _TYPES.get(kind) or f"alarm-{kind}"


def kind_of_event(type: str) -> MessageKind | None:
    """The kind of message for an event of an alarm; None for any other event."""
    return next((kind for kind in KINDS if kind not in _TYPES and f"alarm-{kind}" == type), None)


@dataclass(frozen=True, kw_only=True)
class MessageView:
    """How a channel shows messages."""

    tz: str = "UTC"
    console_url: str = ""
    """Address of the console, without a slash at the end. Empty: messages have no link."""
    acknowledge_url: str = ""
    """A link that acknowledges the one alarm of the message. Empty: none."""

    def instant(self, at: datetime) -> str:
        """`2026-03-10 15:00:00 CET`, to the second."""
        return f"{at.astimezone(zone(self.tz)):%Y-%m-%d %H:%M:%S %Z}"

    def link(self, alarm_id: UUID | str | None) -> str | None:
        return f"{self.console_url}/alarms/{alarm_id}" if self.console_url and alarm_id else None


UTC_VIEW = MessageView()


@dataclass(frozen=True, kw_only=True)
class AlarmFacts:
    """An alarm as it is when the message is built."""

    rule: str
    title: str | None = None
    description: str | None = None
    runbook_url: str | None = None
    severity: str | None = None
    """The name of the level."""
    owner: str | None = None
    instance: str | None = None
    key: str | None = None
    value: object = None
    first_value: object = None
    """The value with which the condition began; `value` is the newest that was known."""
    unit: str | None = None
    threshold: str | None = None
    """The condition in words, such as `above 65`."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | str | None = None
    """An instant, or its text in an event."""
    resolved_at: datetime | None = None
    state: str = "open"
    """`open` or `resolved`."""
    message: str | None = None
    alarm_id: UUID | str | None = None
    acknowledged_by: str | None = None
    snoozed_by: str | None = None
    snoozed_until: datetime | str | None = None
    resolved_by: str | None = None
    reason: str | None = None
    """Why the alarm resolved, or what changed."""
    note: str | None = None

    @property
    def began_at(self) -> datetime | None:
        return _instant(self.since)

    @property
    def is_open(self) -> bool:
        return self.state != "resolved"

    @property
    def name(self) -> str:
        return self.title or self.rule

    @property
    def rank(self) -> int:
        return severities().get(self.severity or "", 0)

    @property
    def status(self) -> str:
        """The state for readers: `open`, `acknowledged by ada`, `snoozed` or `resolved`."""
        if not self.is_open:
            return f"resolved by {self.resolved_by}" if self.resolved_by else "resolved"
        if self.acknowledged_by:
            return f"acknowledged by {self.acknowledged_by}"
        return "snoozed" if self.snoozed_until else "open"

    @classmethod
    def of(cls, alarm: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> AlarmFacts:
        """From the facts `alarm` and `event` of templates. `severity` of `alarm` is a number or a name.

        Values of the event come first: a resolution has the value that cleared the condition. An
        operator's name, note and reason come from the event.
        """
        event_payload: Mapping[str, Any] = event["payload"] if event else {}
        payload = {**alarm["payload"], **event_payload}
        kind = kind_of_event(event["type"]) if event else None
        who = _text(event_payload.get("who"))
        severity = alarm["severity"]
        state = "resolved" if kind == "resolved" else str(alarm.get("state") or "open")
        return cls(
            rule=alarm["rule"],
            title=_text(payload.get("title")),
            description=_text(payload.get("description")),
            runbook_url=_text(payload.get("runbook_url")),
            severity=severity if isinstance(severity, str) else level_name(severity),
            owner=alarm["owner"],
            instance=_text(payload.get("instance")),
            key=_text(payload.get("key")),
            value=payload.get("value"),
            first_value=payload.get("first_value"),
            unit=_text(payload.get("unit")),
            threshold=_text(payload.get("threshold")),
            labels=payload.get("labels") or {},
            since=alarm["since"] or payload.get("since"),
            resolved_at=event["ts"] if event and kind == "resolved" else alarm.get("resolved_at"),
            state=state,
            message=_text(payload.get("message")) or _text(alarm["message"]),
            alarm_id=alarm["id"],
            acknowledged_by=(who if kind == "acknowledged" else None) or _text(alarm["acknowledged_by"]),
            snoozed_by=_text(payload.get("snoozed_by"))
            or (who if kind in ("snoozed", "unsnoozed") else None),
            snoozed_until=_text(payload.get("until")) if kind == "snoozed" else None,
            resolved_by=who if kind == "resolved" else None,
            reason=_text(event_payload.get("reason")),
            note=_text(event_payload.get("note")),
        )


def subject_of(facts: AlarmFacts, kind: MessageKind) -> str:
    """`[HIGH] name (owner)`, short enough for the lock screen of a phone. The occasion stands in the
    brackets: `[HIGH acknowledged]`."""
    owner = f" ({facts.owner})" if facts.owner else ""
    return f"[{label_of(facts.severity, kind)}] {facts.name}{owner}"


def label_of(severity: str | None, kind: MessageKind) -> str:
    if kind == "resolved":
        return "RESOLVED"
    return f"{(severity or 'alarm').upper()} {_OCCASIONS[kind]}".rstrip()


def measured(value: object, unit: str | None) -> str:
    text = plain_text(value)
    return f"{text} {unit}" if text and unit else text


def time_between(since: datetime, until: datetime) -> str:
    """The duration to the second, at least zero: a clock may have gone back."""
    return format_duration(timedelta(seconds=max(0, int((until - since).total_seconds()))))


def _instant(value: datetime | str | None) -> datetime | None:
    return parse_iso(value) if isinstance(value, str) else value


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None
