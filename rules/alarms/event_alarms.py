"""Alarms over events: the event_rules of the record lane.

Guarantee: an event is judged once, at the instant it was recorded, by the rules that held at its seq, in the batch that
moves the lane's position. An alarm carries the correlation of the event that began it.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from rules.alarms.alarm_rules import AlarmRules
from rules.alarms.judgement import Judgement, read_states
from rules.current import RuleBook
from rules.engine import EventSeen, Rule
from rules.expressions import event_activation, event_environment
from schemas.event import Event
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
_PARTITION = 0


class EventAlarms:
    def __init__(self) -> None:
        self._book = RuleBook(AlarmRules, *AlarmRules.KINDS)

    async def plan(self, connection: Connection, events: Sequence[Event]) -> Judgement:
        heard = await self._heard(connection, events)
        seen = await read_states(
            connection, ((rule.name, event.owner) for event, rules in heard for rule in rules)
        )
        judgement = Judgement("record", _PARTITION, seen)
        for event, rules in heard:
            given = _given(event)
            if given is not None:
                for rule in rules:
                    judgement.hear(rule, event.owner, given, event.correlationid)
        return judgement

    async def _heard(
        self, connection: Connection, events: Sequence[Event]
    ) -> list[tuple[Event, tuple[Rule, ...]]]:
        """The events that some rule is about, with those rules."""
        if not events:
            return []
        await self._book.refresh(connection, min(event.seq for event in events))
        paired = ((event, self._book.at(event.seq).for_event(event.type)) for event in events)
        return [(event, rules) for event, rules in paired if rules]


def _given(event: Event) -> EventSeen | None:
    """One activation for all rules. An event that no condition can read is passed over, and said."""
    facts = event.facts()
    try:
        return EventSeen(event.recordedat, facts, event_activation(event_environment(), facts))
    except InvalidInput as error:
        _log.error("event cannot be judged", seq=event.seq, error=error)
        return None
