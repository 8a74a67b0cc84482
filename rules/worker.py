"""A worker: drains lanes, performs steps, takes reports, catches events and decides health, in one service.

Any number of them run at once: they share the lanes' partitions, and they are competing consumers of everything else.
If one part fails, all are stopped and the service starts them again; why it cannot work is noted for the doctor.
"""

from __future__ import annotations

import asyncio

from rules.actions.cancelling import AlarmEndings
from rules.actions.event_waits import EventWaits
from rules.actions.reports import Reports
from rules.actions.turns import Turns
from rules.alarms.event_alarms import EventAlarms
from rules.alarms.series_alarms import SeriesAlarms
from rules.catching import Catcher
from rules.datapoints.lane import DataLane
from rules.dispatch import Dispatcher
from rules.health.deciding import HealthDecider
from rules.lanes.pace import Pace, Paces
from rules.lanes.service import Lanes
from rules.lanes.standing import note_refusal
from rules.performer import Performer
from rules.record_lane import RecordLane
from tocsin.core.errors import TocsinError
from tocsin.core.service import end_tasks
from tocsin.core.settings import Settings


class Worker:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._paces = Paces(Pace)

    async def run(self) -> None:
        lanes = Lanes(
            self._settings,
            [
                RecordLane(
                    self._settings, [EventAlarms(), Dispatcher(), EventWaits(), AlarmEndings(), Turns()]
                ),
                DataLane(self._settings, [SeriesAlarms()]),
            ],
            self._paces,
        )
        parts = [
            asyncio.create_task(lanes.run(), name="lanes"),
            asyncio.create_task(Performer(self._settings).run(), name="perform"),
            asyncio.create_task(Reports(self._settings).run(), name="reports"),
            asyncio.create_task(Catcher(self._settings).run(), name="catch"),
            asyncio.create_task(HealthDecider(self._settings).run(), name="health"),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        except TocsinError as error:
            await note_refusal(self._settings, str(error))
            raise
        finally:
            await end_tasks(parts)
