-- What was staged, into the partition of its day. The batch's position makes a second time impossible; the key says so too.
insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value, labels)
select arrived_at, stream_seq, position, owner, key, ts, value, labels
from pg_temp.staged_datapoint
on conflict do nothing
