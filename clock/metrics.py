"""Metrics of a clock, and of leadership.

Guarantee: a batch is counted after its commit, with a few calls however many timers it has.
Lateness is measured at the commit, on the database's clock.
"""

from __future__ import annotations

from datetime import datetime

from clock.kinds import FiringPlan
from tocsin.core.metrics import Metrics

LEASES = Metrics()
LEADER = LEASES.gauge("tocsin_leader", "1 while this process holds the lease of the role", "role")
STALLS = LEASES.counter(
    "tocsin_lease_stalls_total", "leases that this process gave up because its work made no progress", "role"
)

CLOCK = Metrics()
FIRES = CLOCK.counter(
    "tocsin_fires_total",
    "fires of this clock: fired, missed (once per schedule and outage), failed (the timer is retried or parked)",
    "kind",
    "outcome",
)
PROCESSED = CLOCK.counter(
    "tocsin_timers_processed_total", "timers that were consumed or moved to their next time", "kind"
)
LATENESS = CLOCK.histogram(
    "tocsin_fire_lateness_seconds",
    "time from when a fire was due to its commit, on the database's clock",
    "kind",
)
BATCH = CLOCK.histogram("tocsin_fire_batch_seconds", "duration of a transaction of fires", "kind")
OFFSET = CLOCK.gauge(
    "tocsin_clock_offset_seconds",
    "the database's clock minus the clock of this host, while this process leads",
)
JUMPS = CLOCK.counter("tocsin_clock_jumps_total", "jumps of the database's clock that this clock followed")
EPOCH = CLOCK.gauge("tocsin_clock_epoch", "epoch of this clock's last term")


def count_batch(kind: str, plan: FiringPlan, committed_at: datetime, took_s: float) -> None:
    FIRES.add(plan.fires, kind, "fired")
    FIRES.add(plan.missed, kind, "missed")
    FIRES.add(len(plan.failed), kind, "failed")
    PROCESSED.add(plan.processed, kind)
    BATCH.observe(took_s, kind)
    committed_s = committed_at.timestamp()
    LATENESS.observe_all([committed_s - due_s for due_s in plan.due_times_s], kind)
