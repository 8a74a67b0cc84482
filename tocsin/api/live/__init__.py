"""The live feed: every record of the log, in order, to any number of connections of one process.

Guarantees:
- Within one connection the seqs rise, no record comes twice, and none is left out that the query
  selects and the principal may see. Records that the process no longer has in memory, or that the
  stream no longer has, are read from the tables.
- A record reaches a connection only if the grants of its principal allow it for the owner of the
  record. A record without an owner needs a grant for all owners.
- A connection holds a position and no records. One that reads too slowly, or resumes too far back,
  gets `resync` with the last seq it has seen, and continues with the newest records.

Why one reader: a consumer in NATS for each connection would cost the server memory and the process
a subscription, and a connection of a stranger could create any number of them.

On failure: while NATS is away, connections stay open and receive heartbeats. The reader continues
after the last record that it has read.
"""
