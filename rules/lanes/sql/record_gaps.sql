-- Records arrival gaps of a partition of the data lane. The transaction holds the row of the
-- partition, and sets its last_gap_at.
insert into tocsin.arrival_gap (partition, began_at, ended_at)
select %(partition)s, g.began_at, g.ended_at
from unnest(%(began_at)s::timestamptz[], %(ended_at)s::timestamptz[]) as g (began_at, ended_at)
