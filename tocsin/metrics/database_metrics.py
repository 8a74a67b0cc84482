"""Figures of the house: what Postgres says of timers, verdicts, the log, lanes, alarms, actions and series.

Guarantee: reads only, takes no lock, and every statement walks an index for a bounded number of rows: a million timers
cost what ten thousand do. What is known to be possible is there as 0 when there is none of it, so that a figure that
falls back is seen to.

Every process shows the same figures of one house: take the `max` over processes, never the `sum`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc.log_reader import LogReader
from cdc.report import Report, read_report
from rules.lanes.status import PartitionStatus, list_lanes, list_workers
from rules.runbook.states import ACTIVE, DEAD
from schemas.values.severities import level_name, severities
from tocsin.core.db import Connection, fetch_all, fetch_value, statement
from tocsin.core.metrics import Metrics

# Which verdicts wait for which lane: silence is of series, alarms are of both.
_VERDICTS = (("watchdog", "data"), ("for-sustain", "data"), ("for-sustain", "record"))


class House:
    """The families, with what one reading found."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._declare_timers(self.metrics)
        self._declare_log(self.metrics)
        self._declare_work(self.metrics)

    def _declare_timers(self, house: Metrics) -> None:
        self.armed = house.gauge(
            "tocsin_timers_armed", "timers for later; beyond 10,000 of a kind, an estimate", "kind"
        )
        self.due = house.gauge(
            "tocsin_timers_due", "timers that are due, held ones too; at most 10,000", "kind"
        )
        self.overdue = house.gauge(
            "tocsin_timers_overdue_seconds", "for how long the oldest due timer has been due", "kind"
        )
        self.parked = house.gauge("tocsin_timers_parked", "timers parked after repeated failures", "kind")
        self.held = house.gauge(
            "tocsin_verdicts_held",
            "verdicts that wait until their partition is read (pipeline-behind); at most 10,000 in all",
            "kind",
            "lane",
            "partition",
        )
        self.held_s = house.gauge(
            "tocsin_verdicts_held_seconds",
            "for how long the oldest of the held verdicts has waited",
            "kind",
            "lane",
            "partition",
        )

    def _declare_log(self, house: Metrics) -> None:
        self.epoch = house.gauge("tocsin_log_epoch", "epoch of the newest term of a clock")
        self.head = house.gauge("tocsin_log_head_seq", "seq of the newest record")
        self.published = house.gauge(
            "tocsin_log_published_seq",
            "last seq known to be in the stream, by the publisher's last audit or because a worker has read it",
        )
        self.lag = house.gauge(
            "tocsin_log_publish_lag_seconds",
            "for how long the oldest record that is not known to be in the stream has been committed",
        )
        self.problem = house.gauge(
            "tocsin_stream_problem",
            "1 while log and stream differ or the publisher stopped: see `tocsin doctor`",
        )

    def _declare_work(self, house: Metrics) -> None:
        self.position = house.gauge(
            "tocsin_lane_last_seq", "last sequence that was read of the lane's stream", "lane", "partition"
        )
        self.behind = house.gauge(
            "tocsin_lane_behind_seconds",
            "since when what arrived may not all have been read",
            "lane",
            "partition",
        )
        self.drained = house.gauge(
            "tocsin_lane_drained", "1 while a worker that is alive drains the partition", "lane", "partition"
        )
        self.workers = house.gauge("tocsin_workers", "workers that are alive and share the lanes")
        self.alarms = house.gauge("tocsin_alarms_open", "open alarms; at most 100,000", "severity")
        self.actions = house.gauge(
            "tocsin_actions", "actions under way, and dead ones that nobody retried; at most 100,000", "state"
        )
        self.stale = house.gauge("tocsin_series_stale", "series whose data stopped; at most 100,000")

    def take_timers(
        self, timers: Sequence[tuple[str, int, int, float | None]], parked: dict[str, int]
    ) -> None:
        for kind, armed, due, overdue_s in timers:
            self.armed.set(armed, kind)
            self.due.set(due, kind)
            self.overdue.set(overdue_s or 0, kind)
            self.parked.set(parked.get(kind, 0), kind)

    def take_lanes(self, lanes: Sequence[PartitionStatus]) -> None:
        for one in lanes:
            place = one.lane, str(one.partition)
            self.position.set(one.last_seq, *place)
            self.drained.set(one.holder is not None, *place)
            if one.behind_s is not None:
                self.behind.set(one.behind_s, *place)
            for kind, lane in _VERDICTS:
                if lane == one.lane:
                    self.held.set(0, kind, *place)
                    self.held_s.set(0, kind, *place)

    def take_held(self, held: Sequence[tuple[str, str, int, int, float]]) -> None:
        for kind, lane, partition, count, waited_s in held:
            self.held.set(count, kind, lane, str(partition))
            self.held_s.set(waited_s, kind, lane, str(partition))

    def take_log(self, epoch: int, head: int, published: int, lag_s: float, report: Report) -> None:
        self.epoch.set(epoch)
        self.head.set(head)
        self.published.set(published)
        self.lag.set(lag_s)
        self.problem.set(report.problem is not None)

    def take_counts(self, alarms: dict[int, int], actions: dict[str, int], stale: int) -> None:
        for severity in {**dict.fromkeys(severities().values(), 0), **alarms}:
            self.alarms.set(alarms.get(severity, 0), level_name(severity))
        for state in (*ACTIVE, *DEAD):
            self.actions.set(actions.get(state, 0), state)
        self.stale.set(stale)


async def prepare(connection: Connection) -> None:
    """A session that only reads figures."""
    await connection.execute(statement("tocsin.metrics/set_session"))


async def read_house(connection: Connection) -> Metrics:
    house = House()
    parked = dict(await fetch_all(connection, "tocsin.metrics/count_parked"))
    timers = await fetch_all(connection, "tocsin.metrics/count_timers")
    house.take_timers([(*row,) for row in timers], parked)
    lanes = await list_lanes(connection)
    house.take_lanes(lanes)
    held = await fetch_all(connection, "tocsin.metrics/count_held")
    house.take_held([(*row,) for row in held])
    house.workers.set(len(await list_workers(connection)))
    await _read_log(connection, house, lanes)
    alarms = await fetch_all(connection, "tocsin.metrics/count_alarms")
    actions = await fetch_all(connection, "tocsin.metrics/count_actions")
    stale = await fetch_value(connection, "tocsin.metrics/count_stale")
    house.take_counts(dict(alarms), dict(actions), stale)
    return house.metrics


async def _read_log(connection: Connection, house: House, lanes: Sequence[PartitionStatus]) -> None:
    """What is in the stream is known without NATS: an audit wrote down what it saw, and what was read was there."""
    reader = LogReader(connection)
    epoch = await fetch_value(connection, "cdc/read_leader")
    report = await read_report(connection)
    read = max((one.last_seq for one in lanes if one.lane == "record"), default=0)
    published = max(report.last_seq or 0, read)
    lag_s = await reader.lag_s(published)
    house.take_log(epoch, await reader.head(), published, lag_s, report)
