"""NotificationRoute routes: which channels are notified about an alarm, alone or in a group.

Guarantee: each channel has a run of its own per alarm or group, so that a failed delivery is retried
without the others. A run begins when an alarm opens. A later transition of an open alarm (a change, the
end of a snooze) begins one as well if there is none, because it was given up or the route is new. A
disabled channel is not notified.

The run follows all later transitions of its alarms (`rules.dispatch.alarm_transitions`); what it sends is
decided when it sends (`rules.runbook.notification_queue`).

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rules.documents.rule_book import RuleSet
from schemas.documents import (
    ActionRuleDocument,
    ChannelDocument,
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
)
from schemas.documents.runbook.notify import (
    DEFAULT_GROUP_INTERVAL,
    DEFAULT_GROUP_WAIT,
    NotificationAction,
    NotifyStep,
)
from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import event_type, is_transition

OPENED = event_type("opened")
BEGINNING = frozenset((OPENED, "alarm-changed", event_type("snooze-ended"), event_type("unsnoozed")))
"""Types of events that begin a notification run."""
_MAX_NAME_LENGTH = 128


class NotificationRoute(NamedTuple):
    rule: str
    """Text of a `RuleRef`: the route."""
    action: str
    document: dict[str, Any]
    step: NotifyStep


def notification_name(channel: str) -> str:
    """The name of the action that notifies a channel."""
    return f"notify-{channel}"[:_MAX_NAME_LENGTH]


def is_beginning(facts: Mapping[str, Any]) -> bool:
    return facts["type"] in BEGINNING and is_transition(facts)


class Notifier:
    def __init__(self, rules: RuleSet) -> None:
        self._channels = {
            name: channel for name, channel in rules.of(ChannelDocument).items() if channel.enabled
        }
        self._routes: dict[str, list[NotificationRoute]] = {}
        for name, rule in rules.of(EventRuleDocument).items():
            self._routes[name] = self._notifications(name, rule.notify, {"repeat": rule.repeat})
        for name, datapoint_type in rules.of(DatapointTypeDocument).items():
            ref, keys = str(RuleRef("stale", name)), {"repeat": datapoint_type.repeat}
            self._routes[ref] = self._notifications(ref, datapoint_type.notify, keys)
        for name, heartbeat in rules.of(HeartbeatDocument).items():
            ref, keys = str(RuleRef("heartbeat", name)), {"repeat": heartbeat.repeat}
            self._routes[ref] = self._notifications(ref, heartbeat.notify, keys)
        self._action_rules = {
            name: self._notifications(name, rule.notify, _keys_of(rule))
            for name, rule in rules.of(ActionRuleDocument).items()
            if rule.notify
        }

    def notifications(self, facts: Mapping[str, Any]) -> Iterator[NotificationRoute]:
        """The routes of the `notify` of the rule or datapoint_type of the alarm."""
        if is_beginning(facts):
            yield from self._routes.get(facts["rule"], ())

    def of_action_rule(self, name: str) -> list[NotificationRoute]:
        return self._action_rules[name]

    def _notifications(
        self, rule: str, channels: tuple[str, ...], keys: Mapping[str, Any]
    ) -> list[NotificationRoute]:
        found = []
        for channel in channels:
            if channel not in self._channels:
                continue
            step = NotifyStep(channel=channel, **keys)
            action = notification_name(channel)
            notification = NotificationAction(
                name=action, notify=step, priority=self._channels[channel].priority
            )
            document = notification.model_dump(mode="json", exclude_defaults=True)
            found.append(
                NotificationRoute(str(RuleRef.of_notification(rule, channel)), action, document, step)
            )
        return found


def _keys_of(rule: ActionRuleDocument) -> dict[str, Any]:
    if not rule.is_grouped:
        return {"repeat": rule.repeat}
    return {
        "repeat": rule.repeat,
        "group_by": rule.group_by,
        "group_wait": rule.group_wait or DEFAULT_GROUP_WAIT,
        "group_interval": rule.group_interval or DEFAULT_GROUP_INTERVAL,
    }
