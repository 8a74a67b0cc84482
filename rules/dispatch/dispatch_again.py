"""Dispatches one event of the record log again, after the record lane rejected it.

Guarantee: it starts, continues and ends the runs that the event would have, each at most once (I7), by the
rules of its seq. Alarms over events are not evaluated again: they depend on the order of events.
The transaction locks the partition of the record lane, as a batch does.
"""

from __future__ import annotations

from cdc.log_reader import LogReader
from rules.dispatch.alarm_transitions import AlarmTransitions
from rules.dispatch.dispatcher import Dispatcher
from rules.dispatch.event_waits import EventWaits
from rules.lanes.lane import LaneMessage
from rules.lanes.record_lane import RecordLane
from schemas.wire.event import EventRow
from tocsin.core.db import Connection, statement
from tocsin.core.errors import Conflict, Refused
from tocsin.core.settings import Settings

_TRIES = 20


async def dispatch_again(connection: Connection, settings: Settings, seq: int) -> None:
    """`Refused` if the log has no event at `seq`."""
    records = await LogReader(connection).read_range(seq - 1, 1)
    if not records or not isinstance(record := records[0], EventRow):
        raise Refused(f"the record log has no event at seq {seq}", remedy="none: it cannot start anything")
    message = LaneMessage(
        seq, record.recorded_at, record.subject(settings.subjects), record.body(settings.source)
    )
    lane = RecordLane(settings, [Dispatcher(), EventWaits(), AlarmTransitions()])
    for attempt in range(_TRIES):
        plan = await lane.plan(connection, 0, [message])
        try:
            async with connection.transaction():
                await plan.stage(connection)
                await connection.execute(statement("rules.dispatch/lock_record_lane"))
                await plan.write(connection)
            return
        except Conflict:
            if attempt == _TRIES - 1:
                raise
