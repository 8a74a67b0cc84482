"""The worker: lanes, steps, reports, external events, health and calculation, in one service.

Any number of workers run at once: they share the partitions of the lanes, and are competing
consumers of everything else.

On failure of one part, that part alone starts again, and the others continue. The reason is
recorded for `tocsin doctor` with the name of the part, and `/healthz` and `tocsin_part_up` report it
until the part runs again. A database that
another version of Tocsin has migrated stops all parts until this version is replaced, because
statements of this version may do the wrong thing there.

Conditions that fail to evaluate are recorded for `tocsin doctor` as well. Each worker reports its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from migrations.runner import refuse_unmigrated
from rules.actions.channel_tests import ChannelTester
from rules.actions.performer import Performer
from rules.actions.queue import QueueBackstop
from rules.actions.reports import ReportConsumer
from rules.alarms.over_events import EventAlarms
from rules.alarms.over_series import SeriesAlarms
from rules.calc.evaluator import CalcEvaluator
from rules.dispatch.alarm_transitions import AlarmTransitions
from rules.dispatch.dispatcher import Dispatcher
from rules.dispatch.event_waits import EventWaits
from rules.dispatch.suppression_ends import SuppressionEnds
from rules.health.decide import HealthDecider
from rules.lanes.batch_size import BatchSize, BatchSizes
from rules.lanes.data_lane import DataLane
from rules.lanes.external_events import EventIngester
from rules.lanes.record_lane import RecordLane
from rules.lanes.service import Lanes
from rules.lanes.status import record_worker_problem
from rules.lanes.stream_pace import StreamPace
from rules.language.cel.failures import FailedCondition, take_failures
from rules.metrics import PART_RESTARTS, PART_UP
from rules.suppression.window_lane import SilenceEnds
from tocsin.core.db import open_session
from tocsin.core.errors import TocsinError, Unreachable
from tocsin.core.record_log import extend_log
from tocsin.core.service import Service, beat, running
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_CHECK_S = 5.0
_WATCH_S = 0.25
_FAILURE_SHOWN_S = 600.0
"""How long `tocsin doctor` shows a condition after it failed."""


class Worker:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._batch_sizes = BatchSizes(BatchSize)
        self._pace = StreamPace()

    async def run(self) -> None:
        lanes = Lanes(
            self._settings,
            [
                RecordLane(
                    self._settings,
                    [
                        SilenceEnds(),
                        EventAlarms(),
                        Dispatcher(),
                        EventWaits(),
                        AlarmTransitions(),
                        SuppressionEnds(),
                        QueueBackstop(),
                    ],
                ),
                DataLane(self._settings, [SeriesAlarms()]),
            ],
            self._batch_sizes,
            self._pace,
        )
        parts = [
            Service("lanes", lanes.run),
            Service("perform", Performer(self._settings).run),
            Service("reports", ReportConsumer(self._settings).run),
            Service("ingest", EventIngester(self._settings).run),
            Service("health", HealthDecider(self._settings).run),
            Service("calc", CalcEvaluator(self._settings).run),
            Service("channel tests", ChannelTester(self._settings).run),
        ]
        try:
            await self._check_schema()
            async with running(*parts):
                await self._watch(parts)
        except TocsinError as error:
            await record_worker_problem(self._settings, error)
            raise

    async def _watch(self, parts: Sequence[Service]) -> None:
        """Report problems of parts, check the schema and extend the log."""
        checked_s = time.monotonic()
        failed_s, failure = 0.0, None
        restarts = dict.fromkeys((part.name for part in parts), 0)
        while True:
            for part in parts:
                PART_UP.set(part.problem is None, part.name)
                PART_RESTARTS.add(part.restarts - restarts[part.name], part.name)
                restarts[part.name] = part.restarts
            problem = _problem_of(parts)
            beat("worker", waiting_for=str(problem or ""))
            if time.monotonic() - checked_s > _CHECK_S:
                checked_s = time.monotonic()
                with suppress(Unreachable, psycopg.Error):  # each part waits for Postgres by itself
                    await self._check_schema()
                if (newest := _condition_failure(take_failures())) is not None:
                    failed_s, failure = checked_s, newest
                elif checked_s - failed_s > _FAILURE_SHOWN_S:
                    failure = None
                if (shown := problem or failure) is not None:
                    await record_worker_problem(self._settings, shown)
            await asyncio.sleep(_WATCH_S)

    async def _check_schema(self) -> None:
        async with open_session(self._settings, "worker") as connection:
            await refuse_unmigrated(connection)
            # The clock does this as well, and may be away.
            with suppress(LOCK_TIMEOUT):
                await extend_log(connection)


def _condition_failure(failed: Sequence[FailedCondition]) -> TocsinError | None:
    """The first of the conditions that failed, and the number of the others."""
    if not failed:
        return None
    rule, text, error, hint = failed[0]
    more = f"; {len(failed) - 1} more conditions fail" if len(failed) > 1 else ""
    place = f"of '{rule}' " if rule else ""
    return TocsinError(
        f"the condition {text!r} {place}cannot be evaluated and decides nothing: {error}{more}",
        remedy=hint or "try the rule with `tocsin test` and the values that arrive",
    )


def _problem_of(parts: Sequence[Service]) -> TocsinError | None:
    """The problem of the first part that has one, and the names of the others."""
    failing = [(part, problem) for part in parts if (problem := part.problem) is not None]
    if not failing:
        return None
    part, problem = failing[0]
    others = ", ".join(other.name for other, _ in failing[1:])
    more = f" (and {others})" if others else ""
    failure = part.last_failure
    remedy = failure.remedy if isinstance(failure, TocsinError) and str(failure) == problem else ""
    text = failure.message if isinstance(failure, TocsinError) and remedy else problem
    return TocsinError(f"{part.name}{more}: {text}", remedy=remedy)
