"""What a worker counts of itself.

Guarantee: what a batch stored is counted after its commit, once however often it was planned; steps and deliveries one
by one, as they end.
"""

from __future__ import annotations

from tocsin.core.metrics import Metrics

WORKER = Metrics()
MESSAGES = WORKER.counter("tocsin_lane_messages_total", "messages that were read and committed", "lane")
LANE_BATCH = WORKER.histogram(
    "tocsin_lane_batch_seconds", "how long a batch took, from planning to its commit", "lane"
)
DATAPOINTS = WORKER.counter(
    "tocsin_datapoints_total", "datapoints that were stored, or set aside with a reason", "outcome"
)
EVENTS = WORKER.counter(
    "tocsin_external_events_total",
    "events of others: appended, known (the key came before), set aside with a reason",
    "outcome",
)
STEPS = WORKER.counter(
    "tocsin_steps_total", "steps that were performed: completed, failed, timed_out, paused", "kind", "outcome"
)
STEP = WORKER.histogram("tocsin_step_seconds", "how long performing a step took, without its commit", "kind")
ACTIONS = WORKER.counter("tocsin_actions_ended_total", "actions whose last step this worker settled", "state")
DELIVERIES = WORKER.counter(
    "tocsin_deliveries_total", "messages to the outside: delivered, retryable, permanent", "target", "outcome"
)
DEAD_LETTERS = WORKER.counter("tocsin_dead_letters_total", "dead letters that were written", "kind")

for _outcome in ("stored", "set_aside"):
    DATAPOINTS.add(0, _outcome)
for _outcome in ("appended", "known", "set_aside"):
    EVENTS.add(0, _outcome)
for _state in ("completed", "failed", "timed_out"):
    ACTIONS.add(0, _state)
for _kind in ("datapoint", "event", "record", "report"):
    DEAD_LETTERS.add(0, _kind)
