"""Evaluates event_rules over events, for batches of the record lane.

Guarantee: each event is evaluated once, at the instant at which it was recorded, with the rules in
force at its seq, in the batch that moves the position of the lane. An alarm carries the correlation
id of the event that began it.

An apply may be ahead of the lane. It ends the alarms of the rules that it removes, and afterwards
the lane reads older events, which those rules still evaluate. So the lane repeats the effect of the
apply on alarms when it reads the `rules-applied` event. There rules over alarms begin, too, with the
alarms that are open at that seq.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from rules.alarms.batch_writes import AlarmBatch, read_keys_with_alarm, read_states, state_key
from rules.alarms.begin_over_alarms import RuleBegin, read_rule_begins
from rules.alarms.rule_change import StateChange, rules_over_alarms_to_begin, state_changes
from rules.documents.compiled_rules import compiled_rule_book
from rules.engine import EventSeen
from rules.lanes.lineage_store import read_lineages_of
from rules.language.cel import event_activation, event_environment
from schemas.wire.event import Event
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
_PARTITION = 0


class EventAlarms:
    def __init__(self) -> None:
        self._book = compiled_rule_book()

    async def plan(self, connection: Connection, events: Sequence[Event]) -> AlarmBatch:
        if events:
            await self._book.refresh(connection, min(event.seq for event in events))
        events_with_rules = [
            (event, self._book.at(event.seq).for_event(event.type, event.rule)) for event in events
        ]
        changes = {
            event.seq: self._state_changes(event.seq) for event in events if event.type == "rules-applied"
        }
        changed_rules = {rule for changes_of_apply in changes.values() for rule in changes_of_apply}
        begins = {
            event.seq: await self._begins(connection, event) for event in events if event.seq in changes
        }
        inputs = {event.seq: _input(event) for event, rules in events_with_rules if rules}
        subjects = [
            state_key(rule, input)
            for event, rules in events_with_rules
            if (input := inputs.get(event.seq)) is not None
            for rule in rules
        ]
        subjects += [state_key(*begin) for of_apply in begins.values() for begin in of_apply]
        if changed_rules:
            subjects += await read_keys_with_alarm(connection, changed_rules)
        batch = AlarmBatch("record", _PARTITION, await read_states(connection, subjects))
        lineages = await read_lineages_of(connection, [event for event, rules in events_with_rules if rules])
        for event, rules in events_with_rules:
            input = inputs.get(event.seq)
            if input is not None:
                for rule in rules:
                    batch.apply_input(rule, input, event.correlationid, lineages.get(event.id, ()))
            if event.seq in changes:
                batch.apply_rule_changes(changes[event.seq], event.recordedat)
            for begin in begins.get(event.seq, ()):
                batch.apply_input(*begin)
        return batch.freeze()

    async def _begins(self, connection: Connection, applied: Event) -> list[RuleBegin]:
        """What the rules over alarms that an apply brings into force read."""
        rules = rules_over_alarms_to_begin(self._book.at(applied.seq), self._book.at(applied.seq + 1))
        return await read_rule_begins(connection, rules, applied.seq, applied.recordedat)

    def _state_changes(self, seq: int) -> dict[str, StateChange]:
        """The effect of the apply at a seq on the rules of this lane."""
        before, after = self._book.at(seq), self._book.at(seq + 1)
        return {
            name: change
            for name, change in state_changes(before, after).items()
            if before.rules[name].document.datapoint is None
        }


def _input(event: Event) -> EventSeen | None:
    """The input of all rules; None for an event that conditions cannot read."""
    facts = event.facts()
    try:
        return EventSeen(event.recordedat, facts, event_activation(event_environment(), facts))
    except InvalidInput as error:
        _log.error("event cannot be evaluated", seq=event.seq, error=error)
        return None
