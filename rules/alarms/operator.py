"""What people do to alarms: acknowledge and snooze, as facts of the record log.

Guarantee: the change, its audit row and its event (`origin=caused`) commit together or not at all. Acknowledging twice
changes nothing: the first one stays. A snooze is a timer, so it ends by itself (`alarm-snooze-ended`).
On failure: `Refused` says in which state the alarm is.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rules.alarms.operator_events import Said, acknowledgement, act_event, check_snooze, silence
from rules.alarms.queries import Row, find_alarm
from schemas.wire.alarm_events import AlarmRef, snooze_payload
from timers.working_set import arm, cancel
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.record_log import append_events

LONGEST_NOTE = 4_000


@dataclass(frozen=True)
class Acted:
    changed: bool
    seq: int | None
    """Of its event; None if nothing changed."""


async def acknowledge(connection: Connection, alarm: Row, actor: Actor, note: str = "") -> Acted:
    if len(note) > LONGEST_NOTE or "\0" in note:
        raise InvalidInput(
            f"the note has {len(note)} characters", remedy=f"give it at most {LONGEST_NOTE}, without NUL"
        )

    async def once() -> Acted:
        async with connection.transaction():
            row = await _changed(
                connection,
                statement("rules.alarms/acknowledge_alarm"),
                {"id": alarm["id"], "at": actor.now, "who": actor.who, "note": note},
            )
            if row is None:
                current = await find_alarm(connection, str(alarm["id"]))
                if current["acknowledged_at"] is None:
                    raise _not_open(current, "acknowledged")
                return Acted(False, None)
            said = acknowledgement(actor.who, actor.via, note)
            return await _record(connection, alarm["id"], row, actor, "acknowledge", said)

    return await retrying(once)


async def snooze(connection: Connection, alarm: Row, actor: Actor, until: datetime | None) -> Acted:
    """Silence an open alarm until an instant; None ends the silence."""
    if until is not None:
        check_snooze(actor.now, until)

    async def once() -> Acted:
        async with connection.transaction():
            if until is None:
                await cancel(connection, "for-sustain", str(alarm["id"]), "snooze")
            else:
                payload = snooze_payload(actor.who)
                await arm(connection, "for-sustain", str(alarm["id"]), "snooze", until, payload)
            row = await _changed(
                connection,
                statement("rules.alarms/snooze_alarm"),
                {"id": alarm["id"], "until": until, "who": actor.who},
            )
            if row is None:
                raise _not_open(await find_alarm(connection, str(alarm["id"])), "snoozed")
            said = silence(actor.who, actor.via, until)
            return await _record(connection, alarm["id"], row, actor, "snooze", said)

    return await retrying(once)


async def _changed(
    connection: Connection, sql: bytes, parameters: dict[str, Any]
) -> tuple[str, str, int, uuid.UUID] | None:
    row: tuple[str, str, int, uuid.UUID] | None = await (await connection.execute(sql, parameters)).fetchone()
    return row


async def _record(
    connection: Connection,
    alarm_id: uuid.UUID,
    row: tuple[str, str, int, uuid.UUID],
    actor: Actor,
    verb: str,
    said: Said,
) -> Acted:
    rule, owner, severity, correlation_id = row
    new = {"alarm": str(alarm_id), **said.payload}
    await record_audit(connection, actor, verb, "alarm", rule, owner=owner, new=new)
    event = act_event(AlarmRef(alarm_id, rule, owner, severity, correlation_id), actor.now, said)
    return Acted(True, await append_events(connection, [event]))


def _not_open(alarm: Row, verb: str) -> Refused:
    return Refused(
        f"alarm {str(alarm['id'])[:8]} ({alarm['event_rule']} of {alarm['owner']!r}) is {alarm['state']}: "
        f"only an open alarm can be {verb}"
    )
