"""CDC: every committed record reaches JetStream exactly once, in commit order.

Guarantee I3 (docs/guarantees.md): the sequence of a record in JetStream equals its `seq`. Message k has the header
`Nats-Expected-Last-Sequence: k-1`, so the stream itself rejects a duplicate, a gap and a stale
publisher.

Why this way: that one header provides fencing, deduplication, order and the resume point. The log
is an ordinary table with a gapless `seq`, so a publisher reads `seq > last` and repairs a stream
that lost its tail; a replication slot would have moved on. The lease only saves work: two live
publishers are harmless.

On failure: in every case a publisher starts again at the last sequence of the stream.

Entry points: `tocsin run cdc` runs `publisher.Publisher`, which starts `stream_check.StreamCheck`.
`tocsin cdc` calls `status`, `verify`, `adopt` and `rebuild`. The doctor and the metrics read
`report` and `log_reader` without NATS.
"""
