"""Lanes: streams that are read in order, each message with effect exactly once.

Guarantee: a lane has partitions, and a partition is drained by one worker at a time, in stream order. How far it is
drained (`lane_partition.last_seq`) moves in the transaction of what the messages cause, so a message has its
effects once, whatever is killed, frozen or restarted. A worker that no longer holds a partition is refused by the
first lock that its transaction asks for.

Why no acknowledgements: a position in the stream and effects in Postgres are two truths, and between them lies the
moment in which a process dies. One truth has no such moment; it also means that a stream which is made anew starts
nothing old again.

On failure: a holder that dies is replaced when `held_until` has passed, one that stops cleanly within
milliseconds. Where a message cannot be worked on at all it is set aside as a dead letter, and the lane goes on.
"""
