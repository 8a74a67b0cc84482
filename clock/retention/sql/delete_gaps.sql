-- Delete arrival gaps by their end. No other transaction changes them.
delete from tocsin.arrival_gap g
using unnest(%(key_1)s::timestamptz[], %(key_2)s::integer[]) as k (ended_at, partition)
where g.ended_at = k.ended_at and g.partition = k.partition
returning g.ended_at
