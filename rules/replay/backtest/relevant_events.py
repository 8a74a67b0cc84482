"""Which events concern actions: what a share of the owners keeps for the dispatch of all of them (`pages`).

Guarantee: pure. An event that starts no action, changes no alarm that an action is about, and is awaited by none is not
kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rules.dispatch.matcher import Match
from rules.replay.backtest.recording.model import RecordedEvent
from rules.replay.backtest.timelines import Timelines
from tocsin.core.errors import InvalidInput

Page = tuple[str, str]
"""The action_rule, or notification, and the event_rule whose alarm it is about."""
_STATES = ("alarm-opened", "alarm-resolved", "alarm-acknowledged", "alarm-snoozed", "alarm-unsnoozed")
"""What an action may know of its alarm follows from these."""


def matches(timelines: Timelines, event: RecordedEvent) -> list[Match]:
    try:
        return timelines.matcher(event.seq).match(event.facts())
    except InvalidInput:
        return []  # The live lane passes over it, too.


def may_concern(timelines: Timelines, event: RecordedEvent) -> bool:
    """Without knowing what came before it."""
    if event.alarm_id is not None:
        return True
    return timelines.matcher(event.seq).awaits_events or bool(matches(timelines, event))


def concerning(timelines: Timelines, events: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """Those of one owner that start an action, may be awaited, or say how an alarm is that an action is about."""
    ordered = sorted(events, key=in_order)
    starting = {event.id for event in ordered if matches(timelines, event)}
    alarms = {event.alarm_id for event in ordered if event.id in starting} - {None}
    return [
        event
        for event in ordered
        if event.id in starting
        or (event.alarm_id in alarms and event.type in _STATES)
        or timelines.matcher(event.seq).awaits_events
    ]


def in_order(event: RecordedEvent) -> tuple[datetime, int, str]:
    """What was concluded at one instant for one owner stays in the order in which it was."""
    return event.recorded_at, event.seq, event.owner
