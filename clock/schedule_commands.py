"""Commands of operators about schedules: pause, resume, cancel, run now. Each becomes an event.

Guarantee: the change, its audit row and its event (`origin=caused`) commit together or not at all.
A run now appends a second event, with the origin, type, payload and action of a fire, so that it
starts what a fire starts. It is no occurrence (I1): its id is random, it has no `fire_at`, and it
is correlated with the event of the operator. The tick and the last occurrence stay as they are.
Each command is one short transaction. Services that change schedules inside their own transactions
leave an audit row only, because they must not lock the log.

On failure: `Refused` if there is no such schedule or its state does not allow the command.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

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


class ScheduleCommand(Protocol):
    """`pause`, `resume` or `cancel`."""

    async def __call__(
        self, connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
    ) -> PutResult: ...


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
    """Append `schedule-triggered`, and the event that a fire would append. Returns the seq of the
    latter."""

    async def once() -> int:
        async with connection.transaction():
            row = await find_schedule(connection, owner, name)
            if row is None:
                raise Refused(f"there is no schedule {name!r}", remedy="`tocsin schedules` lists them")
            new = {"at": actor.now.isoformat()}
            await record_audit(connection, actor, "run-now", "schedule", name, owner=owner, new=new)
            triggered = _event(owner, name, actor, "schedule-triggered")
            event = NewEvent(
                ts=actor.now,
                origin="scheduled",
                type=row["type"],
                payload=row["payload"],
                schedule=name,
                action=row["action"] or "",
                owner=owner,
                source_event_id=triggered.id,
                correlation_id=triggered.id,
            )
            return await append_events(connection, [triggered, event])

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
