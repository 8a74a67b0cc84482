-- Inserts the staged rows into the partitions of their days. The position of the batch prevents a
-- second insert; so does the key.
insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value, labels)
select arrived_at, stream_seq, position, owner, key, ts, value, labels
from pg_temp.staged_datapoint
on conflict do nothing
