"""Alarms over events: the event_rules of the record lane.

Guarantee: an event is judged once, at the instant it was recorded, by the rules that held at its seq, in the batch that
moves the lane's position. An alarm carries the correlation of the event that began it.

An apply may be ahead of the lane: it ends the alarms of rules that it removes, and then this lane reads events that are
older and were judged by those rules. So what the apply did to alarms is done again when its own event is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from rules.alarms.batch_writes import Judgement, read_states, read_subjects
from rules.alarms.rule_change import Fate, fates
from rules.documents.compiled_rules import compiled_rule_book
from rules.engine import EventSeen
from rules.language.cel import event_activation, event_environment
from schemas.wire.event import Event
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
_PARTITION = 0


class EventAlarms:
    def __init__(self) -> None:
        self._book = compiled_rule_book()

    async def plan(self, connection: Connection, events: Sequence[Event]) -> Judgement:
        if events:
            await self._book.refresh(connection, min(event.seq for event in events))
        heard = [(event, self._book.at(event.seq).for_event(event.type)) for event in events]
        switches = {event.seq: self._fates(event.seq) for event in events if event.type == "rules-applied"}
        changed = {rule for fates in switches.values() for rule in fates}
        subjects = [(rule.name, event.owner) for event, rules in heard for rule in rules]
        if changed:
            subjects += await read_subjects(connection, changed)
        judgement = Judgement("record", _PARTITION, await read_states(connection, subjects))
        for event, rules in heard:
            given = _given(event) if rules else None
            if given is not None:
                for rule in rules:
                    judgement.hear(rule, event.owner, given, event.correlationid)
            if event.seq in switches:
                judgement.switch(switches[event.seq], event.recordedat)
        return judgement.prepare()

    def _fates(self, seq: int) -> dict[str, Fate]:
        """What the apply at a seq meant for the rules of this lane."""
        before, after = self._book.at(seq), self._book.at(seq + 1)
        return {
            name: fate
            for name, fate in fates(before, after).items()
            if before.rules[name].document.event is not None
        }


def _given(event: Event) -> EventSeen | None:
    """One activation for all rules. An event that no condition can read is passed over, and said."""
    facts = event.facts()
    try:
        return EventSeen(event.recordedat, facts, event_activation(event_environment(), facts))
    except InvalidInput as error:
        _log.error("event cannot be judged", seq=event.seq, error=error)
        return None
