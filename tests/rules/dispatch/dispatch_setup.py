"""Dispatch without a stream: a batch of the record lane, in a transaction of its own."""

from __future__ import annotations

from collections.abc import Sequence

from rules.dispatch.dispatcher import Dispatcher, StartRuns
from rules.lanes.lane import LaneMessage
from rules.lanes.record_lane import RecordLane
from schemas.wire.event import Event
from tests.rules.apply.apply_setup import T0
from tocsin.core.db import Connection, retrying
from tocsin.core.settings import Settings


class Counted(Dispatcher):
    def __init__(self) -> None:
        super().__init__()
        self.planned: list[StartRuns] = []

    async def plan(self, connection: Connection, events: Sequence[Event]) -> StartRuns:
        self.planned.append(await super().plan(connection, events))
        return self.planned[-1]


async def dispatch(settings: Settings, connection: Connection, bodies: Sequence[bytes]) -> int:
    """Number of runs that were started."""
    subject = f"{settings.subjects}.event.x"
    messages = [LaneMessage(place, T0, subject, body) for place, body in enumerate(bodies, 1)]
    dispatcher = Counted()

    async def once() -> int:
        plan = await RecordLane(settings, [dispatcher]).plan(connection, 0, messages)
        async with connection.transaction():
            await plan.stage(connection)
            await plan.write(connection)
        return len(dispatcher.planned[-1].steps)

    return await retrying(once)
