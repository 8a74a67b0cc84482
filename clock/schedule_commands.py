"""What people do to schedules, as facts of the record log: pause, resume, cancel, run now.

Guarantee: the change, its audit row and its event (`origin=caused`) commit together or not at all. These run in our own
short transactions; services that change schedules inside theirs are in `audit` only, because they must not
hold the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from timers.schedule_spec import Act
from timers.schedules import (
    Put,
    cancel_schedule,
    find_schedule,
    pause_schedule,
    record_act,
    resume_schedule,
)
from tocsin.core.db import Connection, retrying
from tocsin.core.errors import Refused
from tocsin.core.record_log import NewEvent, append_events


async def pause(
    connection: Connection, owner: str, name: str, act: Act, *, if_generation: int | None = None
) -> Put:
    return await _changed(
        connection,
        lambda: pause_schedule(connection, owner, name, act, if_generation=if_generation),
        _event(owner, name, act, "schedule-paused"),
    )


async def resume(
    connection: Connection, owner: str, name: str, act: Act, *, if_generation: int | None = None
) -> Put:
    return await _changed(
        connection,
        lambda: resume_schedule(connection, owner, name, act, if_generation=if_generation),
        _event(owner, name, act, "schedule-resumed"),
    )


async def cancel(
    connection: Connection, owner: str, name: str, act: Act, *, if_generation: int | None = None
) -> Put:
    return await _changed(
        connection,
        lambda: cancel_schedule(connection, owner, name, act, if_generation=if_generation),
        _event(owner, name, act, "schedule-cancelled"),
    )


async def run_now(connection: Connection, owner: str, name: str, act: Act) -> int:
    """A `schedule-triggered` event with the schedule's payload and action; its seq. The next fire stays where it is."""

    async def once() -> int:
        async with connection.transaction():
            row = await find_schedule(connection, owner, name)
            if row is None:
                raise Refused(f"there is no schedule {name!r}", remedy="`tocsin schedules` lists them")
            await record_act(connection, act, "run-now", row, None, {"at": act.now.isoformat()})
            event = NewEvent(
                ts=act.now,
                origin="caused",
                type="schedule-triggered",
                payload=row["payload"],
                schedule=name,
                action=row["action"] or "",
                owner=owner,
            )
            return await append_events(connection, [event])

    return await retrying(once)


async def _changed(connection: Connection, change: Callable[[], Awaitable[Put]], event: NewEvent) -> Put:
    async def once() -> Put:
        async with connection.transaction():
            put = await change()
            if put.outcome != "unchanged":
                await append_events(connection, [event])
            return put

    return await retrying(once)


def _event(owner: str, name: str, act: Act, type: str) -> NewEvent:
    return NewEvent(
        ts=act.now,
        origin="caused",
        type=type,
        payload={"who": act.who, "via": act.via},
        schedule=name,
        owner=owner,
    )
