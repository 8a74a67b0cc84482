"""The notification queue: when a channel is notified about an alarm or a group, and of what.

Guarantee (I8, docs/guarantees.md): a message shows the alarms as they are when it is sent, and a
channel receives one message at a time, so it never receives an older state after a newer one. An
alarm that resolves before the channel was told about it is not mentioned. A delivery that fails is
tried again until the alarms have resolved and the channel knows it, at most `give_up_after` after the
first failure. An alarm that a channel or its fallback was told about is not forgotten: its resolution
is sent to the same channel.

A group sends its first message `group_wait` after its first alarm, and later changes at most every
`group_interval`. `repeat` counts from the last delivery, and ends when every open alarm is
acknowledged. Suppressed alarms are left out; when the suppression ends, what is still open is sent
once (`remind`).

Pure: no I/O, and time is an argument. The performer and the simulation use the same functions:
`next_delivery` until it returns something else than a `DueMessage`, and `record_delivery` or
`record_failure` after each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from rules.runbook.backoff import delay_before
from rules.runbook.outcomes import Rested
from schemas.documents.channel import DEFAULT_CHANNEL_RETRY, ChannelRetry
from schemas.documents.runbook.notify import NotifyStep
from schemas.documents.runbook.retry import RetryPolicy
from tocsin.core.instant import parse_instant

Occasion = Literal["opened", "changed", "resolved", "reminder", "snooze-ended", "silence-ended"]
"""Why a message is sent. `resolved`: no alarm of the run is open any more."""
Rest = Literal["idle", "held", "gathering", "backoff"]
"""Why the queue waits: nothing is to be sent, everything is suppressed, changes are gathered, or the
last delivery failed."""
Place = Literal["channel", "fallback"]

_MAX_ATTEMPTS = 100
"""The exponent of the backoff; the queue itself does not count attempts."""


class NotifiedAlarm(NamedTuple):
    """An alarm of the run as it is now."""

    id: str
    is_open: bool
    is_acknowledged: bool
    content: str
    """A text that differs if the alarm changed: its severity, or the series that fire."""
    suppressed_by: str | None = None
    """The key of the suppression of an open alarm: `snooze`, `silence:<id>`, `alarm:<id>`."""


@dataclass(frozen=True)
class ChannelPolicy:
    """The keys of a channel that the queue needs."""

    name: str
    send_resolved: bool = True
    retry: ChannelRetry = DEFAULT_CHANNEL_RETRY
    give_up_after: timedelta = timedelta(hours=24)


@dataclass(frozen=True)
class QueuePolicy:
    notify: NotifyStep
    channel: ChannelPolicy
    fallback: ChannelPolicy | None = None
    fallback_after: timedelta = timedelta(minutes=5)

    def at(self, place: Place) -> ChannelPolicy:
        if place == "channel" or self.fallback is None:
            return self.channel
        return self.fallback


@dataclass(frozen=True)
class Told:
    """What one channel knows, and how its deliveries went."""

    alarms: Mapping[str, str] = field(default_factory=dict)
    """The content of each open alarm that it was told about."""
    count: int = 0
    """Messages that were delivered."""
    delivered_at: datetime | None = None
    failing_since: datetime | None = None
    failures: int = 0
    retry_at: datetime | None = None
    error: str = ""
    is_permanent: bool = False

    @property
    def is_failing(self) -> bool:
        return self.failing_since is not None

    def settled(self) -> Told:
        """Without failures."""
        return Told(self.alarms, self.count, self.delivered_at)

    def to_json(self) -> dict[str, Any]:
        instants = {
            name: value.isoformat()
            for name in ("delivered_at", "failing_since", "retry_at")
            if (value := getattr(self, name)) is not None
        }
        plain = {"alarms": dict(self.alarms), "count": self.count, "failures": self.failures}
        flags = {"error": self.error, "is_permanent": self.is_permanent}
        return {name: value for name, value in {**plain, **flags}.items() if value} | instants

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Told:
        instants: dict[str, Any] = {
            name: parse_instant(row[name])
            for name in ("delivered_at", "failing_since", "retry_at")
            if name in row
        }
        others = ("alarms", "count", "failures", "error", "is_permanent")
        return cls(**{name: row[name] for name in others if name in row}, **instants)


@dataclass(frozen=True)
class Queue:
    """The state of a notification run, stored in the entry of its step."""

    began_at: datetime
    channel: Told = field(default_factory=Told)
    fallback: Told = field(default_factory=Told)
    remind: Occasion | None = None
    """A suppression has ended: what is still open is sent, even if it was delivered before."""
    gave_up: bool = False
    """The channel was given up; the fallback still has to be told how it ends."""

    def at(self, place: Place) -> Told:
        return self.channel if place == "channel" else self.fallback

    def with_told(self, place: Place, told: Told) -> Queue:
        return replace(self, channel=told) if place == "channel" else replace(self, fallback=told)

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"began_at": self.began_at.isoformat()}
        for place in ("channel", "fallback"):
            told = self.at(place).to_json()
            if told:
                row[place] = told
        if self.remind is not None:
            row["remind"] = self.remind
        return {**row, "gave_up": True} if self.gave_up else row

    @classmethod
    def from_json(cls, row: Mapping[str, Any], started_at: datetime) -> Queue:
        return cls(
            began_at=parse_instant(row["began_at"]) if "began_at" in row else started_at,
            channel=Told.from_json(row.get("channel", {})),
            fallback=Told.from_json(row.get("fallback", {})),
            remind=row.get("remind"),
            gave_up=row.get("gave_up", False),
        )


@dataclass(frozen=True)
class DueMessage:
    """Send a message about these alarms now."""

    place: Place
    occasion: Occasion
    members: tuple[str, ...]
    """Ids of the alarms that the message shows: open ones, and those that it reports as resolved."""


@dataclass(frozen=True)
class Resting:
    """Nothing is sent before `until`, unless an event wakes the step."""

    until: datetime | None
    rest: Rest
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """The run ends: nothing is left to be sent."""

    reason: str
    is_failed: bool = False


def next_delivery(
    queue: Queue, policy: QueuePolicy, members: Sequence[NotifiedAlarm], now: datetime
) -> DueMessage | Resting | Ended:
    """What to do at `now`. `policy` is that of the channels as they are configured now."""
    steps = [_decide(queue, policy, "channel", members, now)]
    if policy.fallback is not None:
        steps.append(_decide_fallback(queue, policy, members, now))
    for step in steps:
        if isinstance(step, DueMessage):
            return step
    resting = [step for step in steps if isinstance(step, Resting)]
    if not resting:
        reason = next(step.reason for step in steps if isinstance(step, Ended))
        return Ended(reason, is_failed=queue.gave_up)
    untils = [step.until for step in resting if step.until is not None]
    held_by = tuple(sorted({member.suppressed_by for member in members if member.suppressed_by}))
    return Resting(min(untils, default=None), resting[0].rest, held_by)


def record_delivery(
    queue: Queue, policy: QueuePolicy, delivery: DueMessage, members: Sequence[NotifiedAlarm], now: datetime
) -> Queue:
    """The queue after a message was delivered."""
    before = queue.at(delivery.place)
    shown = {
        member.id: member.content for member in members if member.id in delivery.members and member.is_open
    }
    gone = {member.id for member in members if not member.is_open}
    kept = {id: content for id, content in before.alarms.items() if id not in gone}
    told = Told({**kept, **shown}, before.count + 1, now)
    after = queue.with_told(delivery.place, told)
    if delivery.place == "channel":
        after = replace(after, remind=None)
    return after


def record_failure(
    queue: Queue,
    policy: QueuePolicy,
    place: Place,
    error: str,
    now: datetime,
    salt: str,
    *,
    is_permanent: bool = False,
    retry_after: timedelta | None = None,
) -> Queue:
    """The queue after a delivery failed. A permanent failure is tried again at the longest interval:
    an operator may repair the target."""
    before, channel = queue.at(place), policy.at(place)
    since = before.failing_since or now
    retry = channel.retry.model_dump() | {"attempts": _MAX_ATTEMPTS}
    delay = delay_before(RetryPolicy.model_validate(retry), before.failures + 2, f"{salt}/{place}")
    if retry_after is not None:
        delay = max(delay, retry_after)
    if is_permanent or delay > channel.retry.max_interval:
        delay = channel.retry.max_interval
    told = replace(
        before,
        failing_since=since,
        failures=before.failures + 1,
        retry_at=now + delay,
        error=error,
        is_permanent=is_permanent,
    )
    return queue.with_told(place, told)


def is_given_up(queue: Queue, policy: QueuePolicy, now: datetime) -> bool:
    """Whether the channel has failed for too long."""
    since = queue.channel.failing_since
    return not queue.gave_up and since is not None and now >= since + policy.channel.give_up_after


def give_up(queue: Queue) -> Queue | Ended:
    """Give the channel up. The run continues only to tell the fallback how it ends."""
    if queue.fallback.alarms:
        return replace(queue, gave_up=True, remind=None)
    return Ended(queue.channel.error, is_failed=True)


def rest_after_fault(entry: Mapping[str, Any], error: str, at: datetime, salt: str) -> Rested:
    """The outcome of an attempt that failed before the channel was known, such as an error of Tocsin."""
    queue = Queue.from_json(entry, at)
    policy = QueuePolicy(NotifyStep.model_validate({"channel": "unknown"}), ChannelPolicy("unknown"))
    queue = record_failure(queue, policy, "channel", error, at, salt)
    return Rested(
        queue.to_json(),
        entry.get("seq", 0),
        until=queue.channel.retry_at,
        rest="backoff",
        answer={"error": error},
    )


def retried_queue(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The queue of a notification that was given up and that an operator retries."""
    row = {key: entry[key] for key in ("began_at", "fallback", "seq") if key in entry}
    if "channel" in entry:
        row["channel"] = Told.from_json(entry["channel"]).settled().to_json()
    return row


def settle(queue: Queue, policy: QueuePolicy, members: Sequence[NotifiedAlarm], now: datetime) -> Queue:
    """Forget failures of a message that is not needed any more, and a reminder without an open
    alarm."""
    if not any(member.is_open and member.suppressed_by is None for member in members):
        queue = replace(queue, remind=None)
    for place in ("channel", "fallback"):
        told = queue.at(place)
        if told.is_failing and not queue.gave_up and _occasion(queue, policy, place, members, now) is None:
            queue = queue.with_told(place, told.settled())
    return queue


def _decide(
    queue: Queue, policy: QueuePolicy, place: Place, members: Sequence[NotifiedAlarm], now: datetime
) -> DueMessage | Resting | Ended:
    told = queue.at(place)
    is_over = not any(member.is_open for member in members)
    if place == "channel" and queue.gave_up:
        return Ended("the channel was given up") if is_over else Resting(None, "idle")
    occasion = _occasion(queue, policy, place, members, now)
    if occasion is None:
        if is_over:
            return Ended("resolved" if told.count else "resolved before it was delivered")
        is_held = any(member.suppressed_by for member in members if member.is_open)
        return Resting(_repeat_at(policy, told, members), "held" if is_held else "idle")
    earliest, rest = _earliest(queue, policy, told, occasion)
    if now < earliest:
        return Resting(earliest, rest)
    resolved = _resolved(policy.at(place), told, members)
    shown = tuple(member.id for member in members if _is_shown(member)) + tuple(resolved)
    return DueMessage(place, occasion, shown)


def _decide_fallback(
    queue: Queue, policy: QueuePolicy, members: Sequence[NotifiedAlarm], now: datetime
) -> DueMessage | Resting | Ended:
    """The fallback is told everything while the channel fails. Afterwards it is only told how the
    alarms ended that it knows."""
    channel, fallback = queue.channel, queue.fallback
    if channel.failing_since is not None and not queue.gave_up:
        due_at = (
            channel.failing_since if channel.is_permanent else channel.failing_since + policy.fallback_after
        )
        if now < due_at and not fallback.alarms:
            is_over = not any(member.is_open for member in members)
            return Ended("resolved") if is_over else Resting(due_at, "backoff")
        if now >= due_at:
            # A reminder is for the channel: the fallback would get it with every attempt of the channel.
            return _decide(replace(queue, remind=None), policy, "fallback", members, now)
    known = [
        member._replace(content=fallback.alarms[member.id], suppressed_by=None)
        for member in members
        if member.id in fallback.alarms
    ]
    if any(member.is_open for member in known) or not known:
        is_over = not any(member.is_open for member in members)
        return Ended("resolved") if is_over else Resting(None, "idle")
    return _decide(replace(queue, remind=None), policy, "fallback", known, now)


def _occasion(
    queue: Queue, policy: QueuePolicy, place: Place, members: Sequence[NotifiedAlarm], now: datetime
) -> Occasion | None:
    told = queue.at(place)
    resolved = _resolved(policy.at(place), told, members)
    if not any(member.is_open for member in members):
        return "resolved" if resolved else None
    shown = [member for member in members if _is_shown(member)]
    if queue.remind is not None and shown:
        return queue.remind
    if any(told.alarms.get(member.id) != member.content for member in shown) or (resolved and shown):
        return "changed" if told.count else "opened"
    if resolved:
        return "changed"
    repeat_at = _repeat_at(policy, told, members)
    return "reminder" if repeat_at is not None and now >= repeat_at else None


def _earliest(queue: Queue, policy: QueuePolicy, told: Told, occasion: Occasion) -> tuple[datetime, Rest]:
    """The first instant at which the message may be sent, and why not before."""
    if told.retry_at is not None:
        return told.retry_at, "backoff"
    notify = policy.notify
    if occasion in ("opened", "changed", "resolved"):
        if told.delivered_at is None and notify.group_wait is not None:
            return queue.began_at + notify.group_wait, "gathering"
        if told.delivered_at is not None and notify.group_interval is not None:
            return told.delivered_at + notify.group_interval, "gathering"
    return queue.began_at, "idle"


def _repeat_at(policy: QueuePolicy, told: Told, members: Sequence[NotifiedAlarm]) -> datetime | None:
    if policy.notify.repeat is None or told.delivered_at is None:
        return None
    is_wanted = any(_is_shown(member) and not member.is_acknowledged for member in members)
    return told.delivered_at + policy.notify.repeat if is_wanted else None


def _is_shown(member: NotifiedAlarm) -> bool:
    return member.is_open and member.suppressed_by is None


def _resolved(channel: ChannelPolicy, told: Told, members: Sequence[NotifiedAlarm]) -> list[str]:
    """The alarms whose resolution the channel does not know yet."""
    if not channel.send_resolved:
        return []
    return [member.id for member in members if not member.is_open and member.id in told.alarms]
