"""Selects the events that are relevant to actions.

A share of the owners keeps them for the dispatch over all owners (`report/notifications.py`).
Guarantee: an event is kept if it starts an action, changes an alarm that an action is about or that
may inhibit another, begins or ends a silence, or may end the wait of an action.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rules.dispatch.matcher import Match
from rules.replay.backtest.recording.model import RecordedEvent
from rules.replay.backtest.timelines import Timelines
from schemas.wire.silence_events import SILENCE_EVENT_TYPES, SILENCE_OWNER
from tocsin.core.errors import InvalidInput

NotificationKey = tuple[str, str]
"""The action_rule, or `notify:` rule, and the event_rule of the alarm."""
_STATE_EVENTS = (
    *("alarm-opened", "alarm-changed", "alarm-resolved"),
    *("alarm-acknowledged", "alarm-snoozed", "alarm-unsnoozed"),
)
"""The state of an alarm, as actions see it, follows from these events."""


def is_silence_event(event: RecordedEvent) -> bool:
    is_ours = event.owner == SILENCE_OWNER and event.origin != "external"
    return is_ours and event.type in SILENCE_EVENT_TYPES


def matches(timelines: Timelines, event: RecordedEvent) -> list[Match]:
    try:
        return timelines.matcher(event.seq).match(event.facts())
    except InvalidInput:
        return []  # The live lane skips such an event, too.


def may_be_relevant(timelines: Timelines, event: RecordedEvent) -> bool:
    """Whether the event can be relevant, whatever events come before and after it."""
    if event.alarm_id is not None or is_silence_event(event):
        return True
    return timelines.matcher(event.seq).awaits_events or bool(matches(timelines, event))


def relevant_events(timelines: Timelines, events: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """The relevant ones among the events of one owner, in order."""
    ordered = sorted(events, key=event_order)
    starting = {event.id for event in ordered if matches(timelines, event)}
    alarms = {event.alarm_id for event in ordered if event.id in starting} - {None}
    return [
        event
        for event in ordered
        if event.id in starting
        or (event.type in _STATE_EVENTS and (event.alarm_id in alarms or timelines.inhibits(event.seq)))
        or is_silence_event(event)
        or timelines.matcher(event.seq).awaits_events
    ]


def event_order(event: RecordedEvent) -> tuple[datetime, int, str]:
    """The sort key of events. Those of one owner and instant keep the order of derivation."""
    return event.recorded_at, event.seq, event.owner
