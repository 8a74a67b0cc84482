"""Simulates the step of a notification run: the live code decides and renders, and nothing is sent.

Guarantee: the queue, its groups, reminders and fallbacks are those of `rules.runbook.notification_queue`.
Every delivery succeeds, except where a test makes it fail: an action `notify-<channel>` is the delivery to
that channel, also as a fallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rules.actions.hold import SuppressionsById
from rules.actions.steps.due_step import DueStep
from rules.actions.steps.notify import Notification, notify_of
from rules.actions.steps.notify_message import notification_message
from rules.delivery.outcome import DeliveryOutcome
from rules.replay.perform import Failure, message_details
from rules.runbook import Rested
from schemas.documents import ChannelDocument
from schemas.wire.alarm_events import event_type


@dataclass(frozen=True)
class SimulatedDelivery:
    channel: str
    is_delivered: bool
    details: Mapping[str, Any]
    """What was sent, or would have been."""


def perform_notification(
    due: DueStep,
    channels: Mapping[str, ChannelDocument],
    suppressions: SuppressionsById,
    failures: list[Failure],
) -> tuple[Rested, list[SimulatedDelivery]]:
    """The outcome of the step, and its deliveries in order."""
    notify, notification = notify_of(due), Notification(due, channels, suppressions)
    deliveries: list[SimulatedDelivery] = []
    while (delivery := notification.next()) is not None:
        name = notification.policy.at(delivery.place).name
        events = _newest_events(due, is_group=notify.group_wait is not None)
        message = notification_message(notify, delivery, due.facts.alarms, events, due.run.read_at)
        details = {"channel": name, "occasion": delivery.occasion, **message_details(message)}
        failure = next((failure for failure in failures if failure.applies_to_channel(name)), None)
        if failure is None:
            notification.record(delivery, DeliveryOutcome("delivered", "delivered"))
        else:
            failure.times -= 1
            notification.record(delivery, DeliveryOutcome("retryable", failure.error))
            details["error"] = failure.error
        deliveries.append(SimulatedDelivery(name, failure is None, details))
    return notification.outcome(), deliveries


def _newest_events(due: DueStep, *, is_group: bool) -> dict[str, Mapping[str, Any]]:
    """The newest event of each alarm; of a group only those of resolutions."""
    return {
        str(event["alarm_id"]): event
        for event in due.facts.events
        if event.get("alarm_id") is not None and (not is_group or event["type"] == event_type("resolved"))
    }
