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

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rules.actions.run import RunFacts
from rules.runbook import Held
from rules.suppression import Suppression, matched_alarm
from rules.suppression.reader import Suppressions
from schemas.wire.alarm_events import event_type
from tocsin.core.db import Connection

_HELD_TYPES = (event_type("opened"), "alarm-changed", event_type("snooze-ended"))

# The event that ends a suppression wakes a step within seconds.
_AFTER_EVENT = timedelta(minutes=1)
_LONGEST_HOLD = timedelta(hours=1)

SuppressionsById = Mapping[str, Suppression]
"""What suppresses alarms, by their ids."""


async def read_suppressions(
    connection: Connection, reader: Suppressions, alarms: Sequence[Mapping[str, Any]], now: datetime
) -> SuppressionsById:
    """The suppressions of those of the alarms that are not resolved."""
    unresolved = [matched_alarm(alarm) for alarm in alarms if alarm["state"] != "resolved"]
    if not unresolved:
        return {}
    found = await reader.of(connection, unresolved, now)
    return {str(id): suppression for id, suppression in found.items()}


def is_holdable(facts: RunFacts) -> bool:
    """Whether a suppression of its alarms holds a run."""
    return bool(facts.alarms) and facts.event.get("type") in _HELD_TYPES


def held(facts: RunFacts, suppressions: SuppressionsById, now: datetime) -> Held | None:
    """The outcome of a step of an action; None if it is performed."""
    unresolved = [alarm["id"] for alarm in facts.alarms if alarm["state"] != "resolved"]
    if not unresolved or any(id not in suppressions for id in unresolved):
        return None
    return held_by([suppressions[id] for id in unresolved], now)


def check_at(suppressions: Iterable[Suppression], now: datetime) -> datetime:
    """When a held step is checked again, in case that it missed the event that ends its suppression.

    The event may have been read between the look at the suppressions and the commit of the outcome.
    """
    ends = (suppression.until or now + _LONGEST_HOLD for suppression in suppressions)
    return min(min(ends, default=now), now + _LONGEST_HOLD) + _AFTER_EVENT


def held_by(suppressions: Sequence[Suppression], now: datetime) -> Held:
    keys = tuple(sorted({suppression.key for suppression in suppressions}))
    reasons = list(dict.fromkeys(suppression.reason for suppression in suppressions))
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return Held(keys, f"held by {reasons[0]}{more}", check_at(suppressions, now))
