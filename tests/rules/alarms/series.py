"""Batches of the data lane without a stream, next to the real clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from clock.term import begin_term
from rules.alarms.over_series import SeriesAlarms
from rules.documents.rule_book import newest_rules
from rules.engine import Arrival, TypeIndex
from rules.lanes.batch import PhasedPlan
from rules.lanes.data_lane import DataBatch, StalenessChange
from rules.lanes.datapoint_store import DatapointWrites, PlacedArrival, prepare_staging
from schemas.wire.calculated import CalculatedDatapoint
from tests.clock.clock_setup import at, drain
from tests.rules.alarms.alarm_batches import virtual_now
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict

Meanwhile = Callable[[], Awaitable[None]]


class Live:
    """Workers and a clock in virtual time, on one partition unless `partition_of` is overridden."""

    partitions = 1

    def __init__(self, worker: Connection, clock: Connection) -> None:
        self.worker = worker
        self._clock = clock
        self._work = SeriesAlarms()

    async def begin(self) -> None:
        for session in (self.worker, self._clock):
            await virtual_now(session, at(0))
        await prepare_staging(self.worker)
        await self.worker.execute(
            "select tocsin.extend_datapoints(%s, %s)", (at(0).date(), at(30 * 86_400).date())
        )
        await self.worker.execute(
            "insert into tocsin.lane_partition (lane, partition)"
            " select 'data', n from generate_series(0, %s - 1) n on conflict do nothing",
            (self.partitions,),
        )

    async def receive(
        self, inputs: Sequence[Arrival | StalenessChange], meanwhile: Meanwhile | None = None
    ) -> int:
        """Process a batch; returns the number of attempts."""
        arrivals = [input for input in inputs if isinstance(input, Arrival)]
        first = inputs[0]
        partition = self.partition_of(first.owner if isinstance(first, Arrival) else first.calculated.owner)
        for attempt in range(1, 10):
            rules_seq = await newest_rules(self.worker)
            batch = DataBatch(partition, inputs, rules_seq, TypeIndex(), watermark=inputs[-1].at)
            planned = await self._work.plan(self.worker, batch)
            stored = DatapointWrites(
                partition, [PlacedArrival(position, arrival) for position, arrival in enumerate(arrivals)]
            )
            plan = PhasedPlan([stored, planned])
            if meanwhile is not None and attempt == 1:
                await meanwhile()
            try:
                async with self.worker.transaction():
                    await plan.stage(self.worker)
                    await self.read_until(inputs[-1].at, partition)
                    await plan.write(self.worker)
            except Conflict:
                continue
            return attempt
        raise AssertionError("in conflict with another transaction every time")

    def partition_of(self, owner: str) -> int:
        return 0

    async def read_until(self, until: Any, partition: int | None = None) -> None:
        """Set the watermark of a partition; of all if none is named."""
        await self.worker.execute(
            "update tocsin.lane_partition set watermark = greatest(watermark, %s)"
            " where %s::integer is null or (lane, partition) = ('data', %s)",
            (until, partition, partition),
        )

    async def run_clock(self, seconds: float) -> None:
        """Fire what is due.

        Each call is a new leader, whose scan begins at the beginning of time.
        """
        await drain(await begin_term(self._clock, "test"), at(seconds))

    async def receive_staleness(self, seconds: float, owner: str = "plant-7") -> None:
        """Process the staleness that the clock recorded, as it comes back through the stream."""
        rows = await all_rows(
            self.worker,
            "select * from tocsin.datapoint_calculated where kind = 'stale' and owner = %s order by seq",
            (owner,),
        )
        changes = [StalenessChange(at(seconds), 0, _calculated(row)) for row in rows]
        if changes:
            await self.receive(changes)


def _calculated(row: dict[str, Any]) -> CalculatedDatapoint:
    return CalculatedDatapoint.model_construct(
        owner=row["owner"], key=row["key"], time=row["ts"], kind=row["kind"], seq=row["seq"]
    )


async def freshness_changes(connection: Connection) -> list[tuple[str, str, float]]:
    """The calculated datapoints (key, kind, seconds since the start), in the order of time."""
    rows = await all_rows(
        connection, "select key, kind, ts from tocsin.datapoint_calculated order by ts, seq"
    )
    return [(row["key"], row["kind"], (row["ts"] - at(0)).total_seconds()) for row in rows]
