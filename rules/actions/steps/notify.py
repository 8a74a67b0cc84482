"""The step of a notification run: sends the current state of its alarms to a channel, and to the fallback
while the channel fails.

Guarantee: `rules.runbook.notification_queue` decides; this module reads the channels as they are
configured now, sends, and returns the queue afterwards. Each message has an idempotency key that its
retries share. A delivery that fails changes the queue and never the state of the run, until the channel
is given up.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from rules.actions.channels import read_channels
from rules.actions.hold import SuppressionsById, check_at, held_by, read_suppressions
from rules.actions.run import ActionRun
from rules.actions.steps.acknowledge_link import with_acknowledge_link
from rules.actions.steps.context import StepContext
from rules.actions.steps.deliver import view_of
from rules.actions.steps.due_step import MAX_TEXT_LENGTH, DueStep
from rules.actions.steps.limited_delivery import deliver_limited
from rules.actions.steps.notify_message import idempotency_key, members_of, notification_message
from rules.actions.store import read_event, read_resolutions
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.target_limits import TargetBusy
from rules.runbook import Outcome, Rested
from rules.runbook.notification_queue import (
    ChannelPolicy,
    DueMessage,
    Ended,
    NotifiedAlarm,
    Queue,
    QueuePolicy,
    Resting,
    give_up,
    is_given_up,
    next_delivery,
    record_delivery,
    record_failure,
    settle,
)
from schemas.documents import ChannelDocument
from schemas.documents.runbook.notify import NotificationStep, NotifyStep
from schemas.values.rule_ref import RuleRef
from schemas.values.severities import level
from timers.recurrence.active_times import time_filter
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text
from tocsin.core.records import NewEvent

_DEFAULT_FALLBACK_AFTER = timedelta(minutes=5)
_CHANNEL_CHECK_INTERVAL = timedelta(minutes=5)
_QUIET_CHECK_INTERVAL = timedelta(hours=1)
_MAX_NAMED_ALARMS = 50
_MAX_RESOLUTIONS = 500
_BUSY_DELAY = timedelta(seconds=1)


async def perform_notify(step: DueStep, context: StepContext) -> Outcome:
    notify = notify_of(step)
    now = step.run.read_at
    alarms = step.facts.alarms
    async with context.open_session() as connection:
        channels = await read_channels(connection, notify.channel)
        suppressions = await read_suppressions(connection, context.suppressions, alarms, now)
        events = await _newest_events(connection, notify, alarms)

    async def send(delivery: DueMessage, channel: ChannelDocument, key: str) -> DeliveryOutcome:
        try:
            shown = [alarm for alarm in alarms if alarm["id"] in delivery.members]
            view = await with_acknowledge_link(
                view_of(channel, context.settings), context, channel, shown, now
            )
            message = notification_message(notify, delivery, alarms, events, now, view)
        except InvalidInput as error:
            return DeliveryOutcome("permanent", str(error))
        try:
            return await deliver_limited(
                context, channel.target, message, key=key, now=now, channel=channel.name
            )
        except TargetBusy as error:
            if not notification.has_sent:
                raise
            # The step cannot be delivered again: that would send the first message twice.
            return DeliveryOutcome("retryable", str(error), retry_after=_BUSY_DELAY)

    notification = Notification(step, channels, suppressions)
    while (delivery := notification.next()) is not None:
        channel = channels[notification.policy.at(delivery.place).name]
        key = notification.key_of(delivery)
        notification.record(delivery, await send(delivery, channel, key))
    return notification.outcome()


async def _newest_events(
    connection: Connection, notify: NotifyStep, alarms: Sequence[Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """The events that messages report, by the ids of alarms.

    The event of a resolved alarm is read by the alarm: the lane may not have passed it to the run yet.
    """
    events: dict[str, Mapping[str, Any]] = {}
    if notify.group_wait is None and alarms:
        event = await read_event(connection, alarms[0]["newest_seq"])
        events |= {} if event is None else {alarms[0]["id"]: event}
    resolved = sorted(
        (alarm for alarm in alarms if alarm["state"] == "resolved"), key=itemgetter("resolved_at")
    )
    newest = [alarm["id"] for alarm in resolved[-_MAX_RESOLUTIONS:]]
    return events | await read_resolutions(connection, newest)


def notify_of(step: DueStep) -> NotifyStep:
    document = step.document
    assert isinstance(document, NotificationStep)
    assert document.notify is not None
    return document.notify


class _Quiet(NamedTuple):
    reason: str
    until: datetime


class Notification:
    """One performance of the step: deliveries, one after the other, and the outcome. Pure: the caller
    sends."""

    def __init__(
        self, step: DueStep, channels: Mapping[str, ChannelDocument], suppressions: SuppressionsById
    ) -> None:
        notify = notify_of(step)
        self._step, self._now = step, step.run.read_at
        self._suppressions = suppressions
        self._channels, self._channel = channels, channels.get(notify.channel)
        self.policy = queue_policy(notify, channels)
        self.members: list[NotifiedAlarm] = members_of(step.facts.alarms, suppressions)
        self.queue = Queue.from_json(step.entry, step.run.started_at)
        self._answer: dict[str, Any] = {"channel": notify.channel}
        self._event: NewEvent | None = None
        self._end: Resting | Ended | None = None
        self.has_sent = False
        """Whether a message was sent, or at least tried."""

    def next(self) -> DueMessage | None:
        """The next message; None if there is none for now."""
        if self._end is not None:
            return None
        if self._channel is None:
            self._end = Ended("the channel was removed")
            return None
        if not self._channel.enabled:
            is_over = not any(member.is_open for member in self.members)
            at = self._now + _CHANNEL_CHECK_INTERVAL
            self._end = Ended("the channel is disabled") if is_over else Resting(at, "held", ("channel",))
            self._answer["reason"] = "the channel is disabled"
            return None
        decision = next_delivery(self.queue, self.policy, self.members, self._now)
        if isinstance(decision, DueMessage):
            quiet = self._quiet(decision)
            if quiet is None:
                return decision
            decision = Resting(quiet.until, "held", (quiet.reason,))
            self._answer["reason"] = quiet.reason
        self._end = decision
        return None

    def _quiet(self, delivery: DueMessage) -> _Quiet | None:
        """Why a message waits for the active times of its channel; None if it is sent now."""
        channel = self._channels[self.policy.at(delivery.place).name]
        if channel.active_in is None:
            return None
        times = time_filter(channel.active_in)
        excluded = times.exclusion(self._now)
        urgent = None if channel.urgent is None else level(channel.urgent)
        shown = (alarm for alarm in self._step.facts.alarms if alarm["id"] in delivery.members)
        if excluded is None or (urgent is not None and any(alarm["severity"] >= urgent for alarm in shown)):
            return None
        begins_at = times.next_change(self._now)
        ends = "" if begins_at is None else f" until {instant_text(begins_at)}"
        # An apply may change the times meanwhile.
        check_at = self._now + _QUIET_CHECK_INTERVAL
        until = check_at if begins_at is None else min(begins_at, check_at)
        return _Quiet(f"active_in of channel {channel.name}{ends} ({excluded})", until)

    def key_of(self, delivery: DueMessage) -> str:
        count = self.queue.at(delivery.place).count
        return idempotency_key(self._step.run.id, delivery, count, self.members)

    def record(self, delivery: DueMessage, outcome: DeliveryOutcome) -> None:
        self.has_sent = True
        text = outcome.text[:MAX_TEXT_LENGTH]
        report = {"occasion": delivery.occasion, "alarms": len(delivery.members), **outcome.result}
        if outcome.state == "delivered":
            self.queue = record_delivery(self.queue, self.policy, delivery, self.members, self._now)
            report |= {"sent": True, "text": text}
        else:
            self.queue = record_failure(
                self.queue,
                self.policy,
                delivery.place,
                text,
                self._now,
                str(self._step.run.id),
                is_permanent=outcome.state == "permanent",
                retry_after=outcome.retry_after,
            )
            report |= {"sent": False, "error": text}
        if delivery.place == "channel":
            self._answer |= report
        else:
            self._answer["fallback"] = {"channel": self.policy.at("fallback").name, **report}
        if is_given_up(self.queue, self.policy, self._now):
            self._give_up()

    def _give_up(self) -> None:
        self._event = failed_event(self._step.run, self.queue, self.policy, self.members)
        after = give_up(self.queue)
        if isinstance(after, Ended):
            self._end = after
        else:
            self.queue = after

    def outcome(self) -> Rested:
        assert self._end is not None
        end, seq = self._end, int(self._step.entry.get("seq", 0))
        queue = settle(self.queue, self.policy, self.members, self._now)
        if isinstance(end, Ended):
            state = "failed" if end.is_failed else "completed"
            error = end.reason if end.is_failed else None
            answer = {**self._answer, "reason": end.reason}
            return Rested(queue.to_json(), seq, answer=answer, end=state, error=error, event=self._event)
        held = [self._suppressions[member.id] for member in self.members if member.id in self._suppressions]
        reason = {"reason": held_by(held, self._now).reason} if held and end.rest == "held" else {}
        ends = [] if end.until is None else [end.until]
        ends += [check_at(held, self._now)] if held else []
        return Rested(
            queue.to_json(),
            seq,
            until=min(ends, default=None),
            rest=end.rest,
            held_by=end.held_by,
            answer={**self._answer, "rest": end.rest, **reason},
            event=self._event,
        )


def queue_policy(notify: NotifyStep, channels: Mapping[str, ChannelDocument]) -> QueuePolicy:
    channel = channels.get(notify.channel)
    if channel is None:
        return QueuePolicy(notify, ChannelPolicy(notify.channel))
    fallback = channels.get(channel.fallback or "")
    return QueuePolicy(
        notify,
        _channel_policy(channel),
        _channel_policy(fallback) if fallback is not None and fallback.enabled else None,
        channel.fallback_after or _DEFAULT_FALLBACK_AFTER,
    )


def _channel_policy(channel: ChannelDocument) -> ChannelPolicy:
    return ChannelPolicy(channel.name, channel.send_resolved, channel.retry, channel.give_up_after)


def failed_event(run: ActionRun, queue: Queue, policy: QueuePolicy, members: list[NotifiedAlarm]) -> NewEvent:
    """The event of a channel that was given up."""
    told = queue.channel
    assert told.failing_since is not None
    fallback = {"fallback": policy.fallback.name} if policy.fallback and queue.fallback.count else {}
    open_ids = [member.id for member in members if member.is_open]
    return NewEvent(
        # Derived from the run, so that a second commit appends the same event.
        id=uuid.uuid5(run.id, f"failed/{told.failing_since.isoformat()}"),
        ts=run.read_at,
        origin="derived",
        type="notification-failed",
        payload={
            "channel": policy.channel.name,
            "route": run.rule,
            "error": told.error,
            "attempts": told.failures,
            "failing_since": told.failing_since.isoformat(),
            "alarms": open_ids[:_MAX_NAMED_ALARMS],
            "open_alarms": len(open_ids),
            **fallback,
        },
        rule=RuleRef.parse(run.rule).name.rpartition(":")[0],
        action=run.name,
        owner=run.owner,
        alarm_id=run.alarm_id,
        source_event_id=run.event_id,
        correlation_id=run.correlation_id,
    )
