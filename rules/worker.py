"""The worker: lanes, steps, reports, external events and health, in one service.

Any number of workers run at once: they share the partitions of the lanes, and are competing
consumers of everything else.

On failure of one part, all parts are stopped and the service starts them again. The reason is
recorded for `tocsin doctor`.
"""

from __future__ import annotations

import asyncio

from rules.actions.cancel import AlarmEnds
from rules.actions.performer import Performer
from rules.actions.queue import QueueBackstop
from rules.actions.reports import ReportConsumer
from rules.alarms.over_events import EventAlarms
from rules.alarms.over_series import SeriesAlarms
from rules.dispatch.dispatcher import Dispatcher
from rules.dispatch.event_waits import EventWaits
from rules.health.decide import HealthDecider
from rules.lanes.batch_size import BatchSize, BatchSizes
from rules.lanes.data_lane import DataLane
from rules.lanes.external_events import EventIngester
from rules.lanes.record_lane import RecordLane
from rules.lanes.service import Lanes
from rules.lanes.status import record_worker_problem
from tocsin.core.errors import TocsinError
from tocsin.core.service import end_tasks
from tocsin.core.settings import Settings


class Worker:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._batch_sizes = BatchSizes(BatchSize)

    async def run(self) -> None:
        lanes = Lanes(
            self._settings,
            [
                RecordLane(
                    self._settings, [EventAlarms(), Dispatcher(), EventWaits(), AlarmEnds(), QueueBackstop()]
                ),
                DataLane(self._settings, [SeriesAlarms()]),
            ],
            self._batch_sizes,
        )
        parts = [
            asyncio.create_task(lanes.run(), name="lanes"),
            asyncio.create_task(Performer(self._settings).run(), name="perform"),
            asyncio.create_task(ReportConsumer(self._settings).run(), name="reports"),
            asyncio.create_task(EventIngester(self._settings).run(), name="ingest"),
            asyncio.create_task(HealthDecider(self._settings).run(), name="health"),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        except TocsinError as error:
            await record_worker_problem(self._settings, error)
            raise
        finally:
            await end_tasks(parts)
