"""Explains the active times of rules and channels: whether an instant is inside, and if not, why.

Guarantee: the documents are those in force now, with the calendars that they were applied with. Reads
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rules.documents.rule_book import applied_documents
from schemas.documents import ActionRuleDocument, ChannelDocument, EventRuleDocument
from timers.recurrence.active_times import TimeFilter, time_filter
from tocsin.core.db import Connection
from tocsin.core.instant import instant_text

_EFFECTS = {
    EventRuleDocument: ("event_rule", "fires", "does not fire"),
    ActionRuleDocument: ("action_rule", "starts runs", "starts no runs"),
    ChannelDocument: ("channel", "is notified", "is not notified"),
}


_KINDS = [kind for kind, _, _ in _EFFECTS.values()]


@dataclass(frozen=True)
class ActiveTimesExplanation:
    sentence: str
    facts: dict[str, Any]


async def explain_active_times(
    connection: Connection, name: str, at: datetime
) -> list[ActiveTimesExplanation]:
    """One for each enabled rule and channel of this name that has `active_in`."""
    documents = await applied_documents(connection, EventRuleDocument, ActionRuleDocument, ChannelDocument)
    found = [
        _explained(document, time_filter(document.active_in), at)
        for document in documents
        if isinstance(document, EventRuleDocument | ActionRuleDocument | ChannelDocument)
        and document.name == name
        and document.enabled
        and document.active_in is not None
    ]
    return sorted(found, key=lambda each: _KINDS.index(each.facts["kind"]))


def _explained(
    document: EventRuleDocument | ActionRuleDocument | ChannelDocument, times: TimeFilter, at: datetime
) -> ActiveTimesExplanation:
    kind, active, inactive = _EFFECTS[type(document)]
    excluded, change = times.exclusion(at), times.next_change(at)
    until = "" if change is None else f", until {instant_text(change)}"
    effect = (
        f"{active} at {instant_text(at)}"
        if excluded is None
        else f"{inactive} at {instant_text(at)}: {excluded}"
    )
    facts = {
        "kind": kind,
        "name": document.name,
        "at": instant_text(at),
        "active": excluded is None,
        "reason": excluded,
        "until": None if change is None else instant_text(change),
    }
    return ActiveTimesExplanation(f"{kind} {document.name} {effect}{until}", facts)
