"""Commands of operators about schedules: pause, resume, cancel, run now. Each becomes an event.

Guarantee: the change, its audit row and its event (`origin=caused`) commit together or not at all.
Each command is one short transaction. Services that change schedules inside their own transactions
leave an audit row only, because they must not lock the log.

On failure: `Refused` if there is no such schedule or its state does not allow the command.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from timers.schedules import (
    PutResult,
    cancel_schedule,
    find_schedule,
    pause_schedule,
    resume_schedule,
)
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, retrying
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent


async def pause(
    connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    return await _change(
        connection,
        lambda: pause_schedule(connection, owner, name, actor, if_generation=if_generation),
        _event(owner, name, actor, "schedule-paused"),
    )


async def resume(
    connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    return await _change(
        connection,
        lambda: resume_schedule(connection, owner, name, actor, if_generation=if_generation),
        _event(owner, name, actor, "schedule-resumed"),
    )


async def cancel(
    connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    return await _change(
        connection,
        lambda: cancel_schedule(connection, owner, name, actor, if_generation=if_generation),
        _event(owner, name, actor, "schedule-cancelled"),
    )


async def run_now(connection: Connection, owner: str, name: str, actor: Actor) -> int:
    """Append a `schedule-triggered` event and return its seq.

    It has the schedule's payload and action. The next fire is not moved.
    """

    async def once() -> int:
        async with connection.transaction():
            row = await find_schedule(connection, owner, name)
            if row is None:
                raise Refused(f"there is no schedule {name!r}", remedy="`tocsin schedules` lists them")
            new = {"at": actor.now.isoformat()}
            await record_audit(connection, actor, "run-now", "schedule", name, owner=owner, new=new)
            event = NewEvent(
                ts=actor.now,
                origin="caused",
                type="schedule-triggered",
                payload=row["payload"],
                schedule=name,
                action=row["action"] or "",
                owner=owner,
            )
            return await append_events(connection, [event])

    return await retrying(once)


async def _change(
    connection: Connection, change: Callable[[], Awaitable[PutResult]], event: NewEvent
) -> PutResult:
    async def once() -> PutResult:
        async with connection.transaction():
            put = await change()
            if put.outcome != "unchanged":
                await append_events(connection, [event])
            return put

    return await retrying(once)


def _event(owner: str, name: str, actor: Actor, type: str) -> NewEvent:
    return NewEvent(
        ts=actor.now,
        origin="caused",
        type=type,
        payload={"who": actor.who, "via": actor.via},
        schedule=name,
        owner=owner,
    )
