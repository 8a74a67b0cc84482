"""Releases what silences and inhibits held when they end, in the record lane.

Guarantee: the end of a silence wakes the notifications about the open alarms that it matched, and
the steps that it held, in the transaction that moves the position of the lane. They look for other
suppressions again. What is still open is notified once, also if it was notified before the silence.
A silence that ends before it has begun wakes nothing.

An apply that changes `inhibit` documents wakes everything that is held, because what inhibited it
may be gone. `rules.dispatch.alarm_transitions` handles snoozes and inhibiting alarms that resolve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rules.dispatch.alarm_transitions import WakeNotifications, Waking
from rules.language.cel import ExpressionInvalid, compile_matcher
from rules.suppression.reader import list_open
from schemas.wire.event import Event
from schemas.wire.silence_events import SilenceFacts, ended_silence
from tocsin.core.db import Connection, fetch_all

_RULES_APPLIED = "rules-applied"
REMIND = "silence-ended"


class SuppressionEnds:
    """Takes part in the record lane after `AlarmTransitions`, which ends runs."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> WakeNotifications:
        wakings: list[Waking] = []
        for event in events:
            silence = ended_silence(event)
            if silence is not None and has_begun(silence, event):
                runs = await _muted_runs(connection, silence)
            elif changes_inhibits(event.type, event.origin, event.data):
                runs = await fetch_all(connection, "rules.dispatch/find_held_runs")
            else:
                continue
            wakings += [Waking(run_id, rule, event, REMIND) for run_id, rule in runs]
        return WakeNotifications(wakings)


def has_begun(silence: SilenceFacts, event: Event) -> bool:
    return silence.starts_at <= event.time


def changes_inhibits(type: str, origin: str, payload: Mapping[str, Any]) -> bool:
    """Whether an event is that of an apply that changed `inhibit` documents."""
    if type != _RULES_APPLIED or origin != "caused":
        return False
    listed = payload.get("documents")
    documents = listed if isinstance(listed, list) else []
    is_cut = payload.get("count") != len(documents)
    return is_cut or any(isinstance(item, dict) and item.get("kind") == "inhibit" for item in documents)


async def _muted_runs(connection: Connection, silence: SilenceFacts) -> list[tuple[UUID, str]]:
    try:
        matcher = compile_matcher(silence.matcher)
    except ExpressionInvalid:
        return []
    alarms = await list_open(connection, matcher)
    columns = {"alarms": [alarm.id for alarm in alarms], "keys": [f"silence:{silence.id}"]}
    return [
        (id, rule) for id, rule in await fetch_all(connection, "rules.dispatch/find_suppressed_runs", columns)
    ]
