"""Acknowledges and snoozes alarms for operators.

Guarantee: the change, its audit row and its event (`origin=caused`) commit together or not at all.
Acknowledging twice changes nothing: the first acknowledgement stays. A snooze is a timer, so it
ends by itself (`alarm-snooze-ended`).

On failure: `Refused` names the state of the alarm.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from rules.alarms.queries import Row, find_alarm
from schemas.wire.alarm_events import (
    AlarmRef,
    acknowledged_event,
    check_snooze,
    snooze_ended_payload,
    snoozed_event,
)
from timers.working_set import arm, cancel
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, fetch_one, retrying
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

MAX_NOTE_LENGTH = 4_000


@dataclass(frozen=True)
class OperatorResult:
    changed: bool
    seq: int | None
    """The seq of the event; None if nothing changed."""


def check_note(note: str) -> None:
    if len(note) > MAX_NOTE_LENGTH or "\0" in note:
        raise InvalidInput(
            f"the note has {len(note)} characters", remedy=f"give it at most {MAX_NOTE_LENGTH}, without NUL"
        )


async def acknowledge(connection: Connection, alarm: Row, actor: Actor, note: str = "") -> OperatorResult:
    check_note(note)

    async def once() -> OperatorResult:
        async with connection.transaction():
            row = await fetch_one(
                connection,
                "rules.alarms/acknowledge_alarm",
                {"id": alarm["id"], "at": actor.now, "who": actor.who, "note": note},
            )
            if row is None:
                current = await find_alarm(connection, str(alarm["id"]))
                if current["acknowledged_at"] is None:
                    raise not_open(current, "acknowledged")
                return OperatorResult(False, None)
            ref = AlarmRef(alarm["id"], *row)
            event = acknowledged_event(ref, actor.now, who=actor.who, via=actor.via, note=note)
            return await _record(connection, event, actor, "acknowledge")

    return await retrying(once)


async def snooze(connection: Connection, alarm: Row, actor: Actor, until: datetime | None) -> OperatorResult:
    """Snooze an open alarm until an instant. An `until` of None ends the snooze."""
    if until is not None:
        check_snooze(actor.now, until)

    async def once() -> OperatorResult:
        async with connection.transaction():
            if until is None:
                await cancel(connection, "for-sustain", str(alarm["id"]), "snooze")
            else:
                payload = snooze_ended_payload(actor.who, alarm["payload"])
                await arm(connection, "for-sustain", str(alarm["id"]), "snooze", until, payload)
            row = await fetch_one(
                connection,
                "rules.alarms/snooze_alarm",
                {"id": alarm["id"], "until": until, "who": actor.who},
            )
            if row is None:
                raise not_open(await find_alarm(connection, str(alarm["id"])), "snoozed")
            ref = AlarmRef(alarm["id"], *row)
            event = snoozed_event(ref, actor.now, who=actor.who, via=actor.via, until=until)
            return await _record(connection, event, actor, "snooze")

    return await retrying(once)


async def _record(connection: Connection, event: NewEvent, actor: Actor, verb: str) -> OperatorResult:
    new = {"alarm": str(event.alarm_id), **event.payload}
    await record_audit(connection, actor, verb, "alarm", event.rule, owner=event.owner, new=new)
    return OperatorResult(True, await append_events(connection, [event]))


def alarm_title(id: uuid.UUID, rule: str, owner: str) -> str:
    """`3f2a91c0 (dsp-hot of 'plant-7')`"""
    return f"{str(id)[:8]} ({rule} of {owner!r})"


def not_open(alarm: Row, verb: str) -> Refused:
    name = alarm_title(alarm["id"], alarm["event_rule"], alarm["owner"])
    return Refused(f"alarm {name} is {alarm['state']}", remedy=f"only an open alarm can be {verb}")
