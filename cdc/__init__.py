"""CDC: every committed record reaches JetStream exactly once, in commit order, whatever is killed (I3).

Guarantee: JetStream's sequence of a record equals its `seq`. Message k carries
`Nats-Expected-Last-Sequence: k-1`, so the stream itself refuses a duplicate, a gap and a stale publisher.

Why this way: that one header is fencing, de-duplication, order and resume point at once. The log is an
ordinary table with a gapless `seq`, so a publisher reads `seq > last` and heals a stream that lost its
tail; a replication slot would have moved on. The lease only saves work: two live publishers are harmless.

On failure: whatever happened, a publisher begins again at the stream's last sequence.
"""
