"""A batch of the record lane without a lane: events are evaluated and written in one transaction."""

from __future__ import annotations

from rules.alarms.over_events import EventAlarms
from rules.lanes.batch import PhasedPlan
from schemas.wire.event import Event
from tests.rules.apply.apply_setup import event_bodies
from tocsin.core.db import Connection


async def process(connection: Connection, work: EventAlarms, after: int = 0, upto: int | None = None) -> None:
    """Process all events after a seq, as the lane would."""
    read = [Event.model_validate_json(body) for body in await event_bodies(connection, after)]
    read = [event for event in read if upto is None or event.seq <= upto]
    async with connection.transaction():
        await PhasedPlan([await work.plan(connection, read)]).write(connection)
