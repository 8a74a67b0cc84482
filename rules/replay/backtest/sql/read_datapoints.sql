-- The datapoints of some owners in the order in which the lane read them. Index: datapoint_series, day
-- by day.
select owner, arrived_at, stream_seq, key, value, ts, labels
from tocsin.datapoint
where owner = any (%(owners)s::text[]) and arrived_at >= %(start)s and arrived_at <= %(until)s
order by owner collate "C", arrived_at, stream_seq, position
