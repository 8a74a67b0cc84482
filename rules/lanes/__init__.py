"""Lanes: streams that workers read in order, so that each message takes effect exactly once.

Guarantee: a lane has partitions, and one worker at a time reads a partition, in stream order. The
position of a partition (`lane_partition.last_seq`) moves in the transaction of the effects, so each
message has its effects once, also if processes are killed, frozen or restarted. Postgres rejects a
worker that no longer holds a partition at the first lock of its transaction.

Why no acknowledgements: a position in the stream and effects in Postgres would be two states, and a
process can die between the two writes. One state has no such gap. A stream that is created again
does not start anything a second time either.

On failure: a worker that dies is replaced after `held_until`, a worker that stops cleanly within
milliseconds. A message that cannot be processed becomes a dead letter, and the lane continues.

Entry points: the worker runs the lanes and `external_events`. The doctor, the metrics and `tocsin
dead-letters` read with `status` and `dead_letters`.
"""
