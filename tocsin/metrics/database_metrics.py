"""Metrics of the instance, read from Postgres: timers, the log, lanes, alarms, actions and series.

Guarantee: reads only, takes no lock, and every statement walks an index for a bounded number of
rows: a million timers cost as much as ten thousand. Every possible combination of labels is
reported, as 0 if it has no rows, so that a value that falls to zero is visible.

Every process serves the same values for one instance: aggregate with `max`, never with `sum`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cdc.log_reader import LogReader
from cdc.report import PublisherReport, read_report
from rules.alarms.notifications import STATES as NOTIFICATION_STATES
from rules.lanes.status import PartitionStatus, count_recent_gaps, list_lanes, list_workers
from rules.runbook.states import ACTIVE, DEAD
from rules.suppression import SUPPRESSION_KINDS, Suppression
from rules.suppression.reader import Suppressions
from rules.suppression.silence_store import read_silences
from schemas.values.severities import level_name, severities
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_all, fetch_value, statement
from tocsin.core.metrics import Metrics

# (kind, lane): the lanes whose watermarks hold timers of a kind. Watchdogs are about series (data
# lane). Sustains are about series or events (data or record lane).
_KINDS_HELD_BY_LANE = (("watchdog", "data"), ("for-sustain", "data"), ("for-sustain", "record"))


_MAX_MATCHED = 10_000
# One evaluation of a matcher takes up to 40 microseconds; alarms that look the same to a matcher, and those
# of owners and rules that it does not name, need none.
_MAX_EVALUATIONS = 10_000


class DatabaseMetrics:
    """The metric families, filled by one read."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._declare_timers(self.metrics)
        self._declare_log(self.metrics)
        self._declare_lanes_and_alarms(self.metrics)

    def _declare_timers(self, metrics: Metrics) -> None:
        self.armed = metrics.gauge(
            "tocsin_timers_armed", "timers that are not due; estimated if a kind has more than 10,000", "kind"
        )
        self.due = metrics.gauge(
            "tocsin_timers_due", "due timers, including held ones; at most 10,000", "kind"
        )
        self.overdue = metrics.gauge("tocsin_timers_overdue_seconds", "age of the oldest due timer", "kind")
        self.parked = metrics.gauge("tocsin_timers_parked", "timers parked after repeated failures", "kind")
        self.held = metrics.gauge(
            "tocsin_timers_held",
            "due timers that wait for the watermark of their partition; at most 10,000 in all",
            "kind",
            "lane",
            "partition",
        )
        self.held_s = metrics.gauge(
            "tocsin_timers_held_seconds",
            "time since the deadline of the oldest held timer",
            "kind",
            "lane",
            "partition",
        )

    def _declare_log(self, metrics: Metrics) -> None:
        self.epoch = metrics.gauge("tocsin_log_epoch", "newest epoch in the database")
        self.head = metrics.gauge("tocsin_log_head_seq", "seq of the newest record")
        self.published = metrics.gauge(
            "tocsin_log_published_seq",
            "last seq known to be in the stream, from the stream check or the record lane",
        )
        self.lag = metrics.gauge(
            "tocsin_log_publish_lag_seconds",
            "time since the commit of the oldest record that is not known to be in the stream",
        )
        self.commit_wait = metrics.gauge(
            "tocsin_commit_wait_seconds", "how long the oldest commit has waited for a synchronous standby"
        )
        self.problem = metrics.gauge(
            "tocsin_stream_problem",
            "1 while log and stream differ or the publisher has stopped; `tocsin doctor` has the reason",
        )

    def _declare_lanes_and_alarms(self, metrics: Metrics) -> None:
        self.position = metrics.gauge(
            "tocsin_lane_last_seq",
            "last sequence that was read from the stream of the lane",
            "lane",
            "partition",
        )
        self.behind = metrics.gauge(
            "tocsin_lane_behind_seconds",
            "time since the watermark of the partition",
            "lane",
            "partition",
        )
        self.canary_failing = metrics.gauge(
            "tocsin_canary_failing", "1 while NATS does not accept the canaries of the partition", "partition"
        )
        self.gaps = metrics.gauge("tocsin_arrival_gaps", "arrival gaps of all partitions in the last hour")
        self.has_worker = metrics.gauge(
            "tocsin_lane_has_worker", "1 while a live worker reads the partition", "lane", "partition"
        )
        self.workers = metrics.gauge("tocsin_workers", "live workers")
        self.alarms = metrics.gauge("tocsin_alarms_open", "open alarms; at most 100,000", "severity")
        self.suppressed = metrics.gauge(
            "tocsin_alarms_suppressed",
            "open alarms that notify no one; of at most 10,000 alarms, of fewer if many matchers read them all",
            "by",
        )
        self.silences = metrics.gauge("tocsin_silences_active", "silences in force, with maintenance windows")
        self.actions = metrics.gauge(
            "tocsin_actions",
            "runs that are active, and dead runs that were not retried; at most 100,000",
            "state",
        )
        self.notifications = metrics.gauge(
            "tocsin_notifications",
            "notifications of open alarms, and those that were given up (failed); at most 100,000",
            "state",
        )
        self.failing = metrics.gauge(
            "tocsin_notifications_failing", "notifications whose last delivery failed; they are retried"
        )
        self.failing_s = metrics.gauge(
            "tocsin_notifications_failing_seconds", "how long the oldest of them has failed"
        )
        self.stale = metrics.gauge("tocsin_series_stale", "stale series; at most 100,000")
        self.heartbeats = metrics.gauge(
            "tocsin_heartbeats", "heartbeats by the cause of their open alarm; ok without one", "status"
        )

    def set_timers(
        self, timers: Sequence[tuple[str, int, int, float | None]], parked: dict[str, int]
    ) -> None:
        for kind, armed, due, overdue_s in timers:
            self.armed.set(armed, kind)
            self.due.set(due, kind)
            self.overdue.set(overdue_s or 0, kind)
            self.parked.set(parked.get(kind, 0), kind)

    def set_lanes(self, lanes: Sequence[PartitionStatus]) -> None:
        for partition in lanes:
            labels = partition.lane, str(partition.partition)
            self.position.set(partition.last_seq, *labels)
            self.has_worker.set(partition.holder is not None, *labels)
            if partition.lane == "data":
                self.canary_failing.set(partition.canary_error is not None, str(partition.partition))
            if partition.behind_s is not None:
                self.behind.set(partition.behind_s, *labels)
            for kind, lane in _KINDS_HELD_BY_LANE:
                if lane == partition.lane:
                    self.held.set(0, kind, *labels)
                    self.held_s.set(0, kind, *labels)

    def set_held(self, held: Sequence[tuple[str, str, int, int, float]]) -> None:
        for kind, lane, partition, count, waited_s in held:
            self.held.set(count, kind, lane, str(partition))
            self.held_s.set(waited_s, kind, lane, str(partition))

    def set_log(self, epoch: int, head: int, published: int, lag_s: float, report: PublisherReport) -> None:
        self.epoch.set(epoch)
        self.head.set(head)
        self.published.set(published)
        self.lag.set(lag_s)
        self.problem.set(report.problem is not None)

    def set_counts(self, alarms: dict[int, int], actions: dict[str, int], stale: int) -> None:
        for severity in {*severities().values(), *alarms}:
            self.alarms.set(alarms.get(severity, 0), level_name(severity))
        for state in (*ACTIVE, *DEAD):
            self.actions.set(actions.get(state, 0), state)
        self.stale.set(stale)

    def set_heartbeats(self, counts: dict[str, int]) -> None:
        for status in ("ok", "late", "failed", "overrun"):
            self.heartbeats.set(counts.get(status, 0), status)

    def set_notifications(self, rows: Sequence[tuple[str, int, float]]) -> None:
        counts = {state: count for state, count, _ in rows}
        for state in NOTIFICATION_STATES:
            self.notifications.set(counts.get(state, 0), state)
        self.failing.set(counts.get("failing", 0))
        self.failing_s.set(max((float(waited_s) for _, _, waited_s in rows), default=0.0))

    def set_suppressed(self, suppressions: Iterable[Suppression], silences: int) -> None:
        counts = Counter(suppression.kind for suppression in suppressions)
        for kind in SUPPRESSION_KINDS:
            self.suppressed.set(counts[kind], kind)
        self.silences.set(silences)


async def set_session_timeout(connection: Connection) -> None:
    """Bound the time of each statement, so that reading metrics never keeps the server busy for long."""
    await connection.execute(statement("tocsin.metrics/set_session"))


async def read_database_metrics(connection: Connection) -> Metrics:
    metrics = DatabaseMetrics()
    parked = dict(await fetch_all(connection, "tocsin.metrics/count_parked"))
    timers = await fetch_all(connection, "tocsin.metrics/count_timers")
    metrics.set_timers(timers, parked)
    lanes = await list_lanes(connection)
    metrics.set_lanes(lanes)
    held = await fetch_all(connection, "tocsin.metrics/count_held")
    metrics.set_held(held)
    metrics.gaps.set((await count_recent_gaps(connection)).number)
    metrics.workers.set(len(await list_workers(connection)))
    metrics.commit_wait.set(await fetch_value(connection, "tocsin.metrics/read_commit_wait"))
    await _read_log(connection, metrics, lanes)
    alarms = await fetch_all(connection, "tocsin.metrics/count_alarms")
    actions = await fetch_all(connection, "tocsin.metrics/count_actions")
    stale = await fetch_value(connection, "tocsin.metrics/count_stale")
    metrics.set_counts(dict(alarms), dict(actions), stale)
    metrics.set_heartbeats(dict(await fetch_all(connection, "tocsin.metrics/count_heartbeats")))
    metrics.set_notifications(await fetch_all(connection, "tocsin.metrics/count_notifications"))
    await _read_suppressions(connection, metrics)
    return metrics.metrics


async def _read_suppressions(connection: Connection, metrics: DatabaseMetrics) -> None:
    reader, silences = Suppressions(), await read_silences(connection)
    now = await database_now(connection)
    suppressions = await reader.of_open(connection, now, _MAX_MATCHED, _MAX_EVALUATIONS)
    metrics.set_suppressed(suppressions.values(), len(silences))


async def _read_log(
    connection: Connection, metrics: DatabaseMetrics, lanes: Sequence[PartitionStatus]
) -> None:
    """Read the state of log and stream without NATS.

    The stream check and the record lane have stored it.
    """
    reader = LogReader(connection)
    epoch = await fetch_value(connection, "clock/read_epoch")
    report = await read_report(connection)
    last_read_seq = max((partition.last_seq for partition in lanes if partition.lane == "record"), default=0)
    published = max(report.last_seq or 0, last_read_seq)
    lag_s = await reader.lag_s(published)
    metrics.set_log(epoch, await reader.head(), published, lag_s, report)
