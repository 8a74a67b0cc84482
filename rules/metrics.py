"""The metrics of a worker.

Guarantee: the writes of a batch are counted after its commit, once however often it was planned.
Steps and deliveries are counted one by one, when they end.
"""

from __future__ import annotations

from tocsin.core.metrics import Metrics

WORKER = Metrics()
PART_UP = WORKER.gauge(
    "tocsin_part_up", "1 while the part of the worker runs and reaches its servers", "part"
)
PART_RESTARTS = WORKER.counter(
    "tocsin_part_restarts_total", "restarts of a part of the worker after a failure", "part"
)
MESSAGES = WORKER.counter("tocsin_lane_messages_total", "messages that were read and committed", "lane")
LANE_BATCH = WORKER.histogram(
    "tocsin_lane_batch_seconds", "duration of a batch, from planning to its commit", "lane"
)
PARTITION_WAITS = WORKER.gauge(
    "tocsin_partition_waits",
    "1 while this worker waits out an error of Postgres that no message is to blame for",
    "lane",
    "partition",
)
CANARIES = WORKER.counter(
    "tocsin_canaries_total", "canaries that the data stream accepted, or did not: accepted, failed", "outcome"
)
DATAPOINTS = WORKER.counter(
    "tocsin_datapoints_total", "datapoints: stored, rejected (a dead letter has the reason)", "outcome"
)
EVENTS = WORKER.counter(
    "tocsin_external_events_total",
    "external events: appended, known (the key came before), rejected (a dead letter has the reason)",
    "outcome",
)
STEPS = WORKER.counter(
    "tocsin_steps_total",
    "steps that were performed: completed, failed, timed_out, paused, held, rested",
    "kind",
    "outcome",
)
STEP = WORKER.histogram("tocsin_step_seconds", "duration of a step, without its commit", "kind")
ACTIONS = WORKER.counter(
    "tocsin_actions_ended_total", "actions whose last step this worker committed", "state"
)
DELIVERIES = WORKER.counter(
    "tocsin_deliveries_total",
    "deliveries by their outcome: delivered, retryable, permanent",
    "target",
    "outcome",
)
CONDITION_FAILURES = WORKER.counter(
    "tocsin_condition_failures_total",
    "evaluations of conditions that had no result: too_expensive (not begun), error",
    "reason",
)
QUOTA_REJECTED = WORKER.counter(
    "tocsin_quota_rejected_total",
    "messages, and datapoints of new series, that a quota rejected: series, all_series, datapoints, bytes, events",
    "quota",
)
DEAD_LETTERS = WORKER.counter("tocsin_dead_letters_total", "dead letters that were written", "kind")
CALC_RESULTS = WORKER.counter("tocsin_calc_results_total", "results of calc_rules", "rule")
CALC_LATE = WORKER.counter(
    "tocsin_calc_late_total", "late datapoints that an input of a calc_rule ignored in a window", "rule"
)
CALC_FAILED = WORKER.counter(
    "tocsin_calc_failed_total",
    "groups whose value could not be calculated, as after a division by zero",
    "rule",
)
CALC_DROPPED = WORKER.counter(
    "tocsin_calc_dropped_total", "groups without a result: there were too many, or a key was too long", "rule"
)

for _outcome in ("accepted", "failed"):
    CANARIES.add(0, _outcome)
for _reason in ("too_expensive", "error"):
    CONDITION_FAILURES.add(0, _reason)
for _outcome in ("stored", "rejected"):
    DATAPOINTS.add(0, _outcome)
for _outcome in ("appended", "known", "rejected"):
    EVENTS.add(0, _outcome)
for _state in ("completed", "failed", "timed_out"):
    ACTIONS.add(0, _state)
for _quota in ("series", "all_series", "datapoints", "bytes", "events"):
    QUOTA_REJECTED.add(0, _quota)
for _kind in ("datapoint", "event", "record", "report", "step"):
    DEAD_LETTERS.add(0, _kind)
