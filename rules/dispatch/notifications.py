"""Notifications: the channels that the `notify` of a rule or a datapoint_type names.

Guarantee: each channel is a run of its own, so that a failed delivery is retried without the
others. A channel is notified when an alarm opens, when a snooze ends while the alarm is open, and,
unless `send_resolved` is false, when the alarm resolves. A disabled channel is not notified.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rules.documents.rule_book import RuleSet
from schemas.documents import ChannelDocument, DatapointTypeDocument, EventRuleDocument
from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import event_type

_NOTIFIED = (event_type("opened"), event_type("resolved"), event_type("snooze-ended"))
_MAX_NAME_LENGTH = 128


class Notification(NamedTuple):
    rule: str
    """Text of a `RuleRef`."""
    action: str
    document: dict[str, Any]


class Notifier:
    def __init__(self, rules: RuleSet) -> None:
        self._channels = {
            name: channel for name, channel in rules.of(ChannelDocument).items() if channel.enabled
        }
        self._notify = {name: rule.notify for name, rule in rules.of(EventRuleDocument).items()}
        for name, datapoint_type in rules.of(DatapointTypeDocument).items():
            self._notify[str(RuleRef("stale", name))] = datapoint_type.notify

    def notifications(self, facts: Mapping[str, Any]) -> Iterator[Notification]:
        if facts["type"] not in _NOTIFIED or facts["origin"] != "derived":
            return
        for name in self._notify.get(facts["rule"], ()):
            channel = self._channels.get(name)
            if channel is None or (facts["type"] == event_type("resolved") and not channel.send_resolved):
                continue
            action = f"notify-{name}"[:_MAX_NAME_LENGTH]
            document = {"name": action, "channel": {"name": name}}
            yield Notification(str(RuleRef.of_notification(facts["rule"], name)), action, document)
