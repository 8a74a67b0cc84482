"""Holds the steps of runs whose alarms are suppressed.

Guarantee (I8, docs/guarantees.md): before a step of a run that an alarm started is performed, the
performer looks for what suppresses the alarms of the run. If every alarm that is not resolved is
suppressed, the step is held, with the reason in its history, and is due again when a suppression ends.
A group notifies about its other alarms. A resolution is never held: a receiver that was told of an alarm
learns that it is over.

A run that reports an operator's transition (acknowledged, snoozed) is not held: the operator asked for
it at this moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rules.actions.run import RunFacts
from rules.runbook import Held
from rules.suppression import Suppression, matched_alarm, suppressed_by
from rules.suppression.reader import Suppressions
from schemas.wire.alarm_events import event_type
from tocsin.core.db import Connection

_HELD_TYPES = (event_type("opened"), "alarm-changed", event_type("snooze-ended"))

SuppressionsById = Mapping[str, Suppression]
"""What suppresses alarms, by their ids."""


async def read_suppressions(
    connection: Connection, reader: Suppressions, alarms: Sequence[Mapping[str, Any]], now: datetime
) -> SuppressionsById:
    """The suppressions of the open ones among these alarms."""
    unresolved = [matched_alarm(alarm) for alarm in alarms if alarm["state"] != "resolved"]
    if not unresolved:
        return {}
    found = await reader.of(connection, unresolved, now)
    return {str(id): suppression for id, suppression in found.items()}


def snoozes_of(alarms: Sequence[Mapping[str, Any]], now: datetime) -> SuppressionsById:
    """The snoozes of the open ones among these alarms."""
    found = {
        alarm["id"]: suppressed_by(matched_alarm(alarm), (), (), (), now)
        for alarm in alarms
        if alarm["state"] != "resolved"
    }
    return {id: suppression for id, suppression in found.items() if suppression is not None}


def is_holdable(facts: RunFacts) -> bool:
    """Whether a suppression of its alarms holds a run."""
    return bool(facts.alarms) and facts.event.get("type") in _HELD_TYPES


def held(facts: RunFacts, suppressions: SuppressionsById) -> Held | None:
    """The outcome of a step of an action; None if it is performed."""
    unresolved = [alarm["id"] for alarm in facts.alarms if alarm["state"] != "resolved"]
    if not unresolved or any(id not in suppressions for id in unresolved):
        return None
    return held_by([suppressions[id] for id in unresolved])


def held_by(suppressions: Sequence[Suppression]) -> Held:
    keys = tuple(sorted({suppression.key for suppression in suppressions}))
    reasons = list(dict.fromkeys(suppression.reason for suppression in suppressions))
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return Held(keys, f"held by {reasons[0]}{more}")
