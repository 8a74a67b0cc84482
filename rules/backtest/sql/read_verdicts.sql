-- What was concluded about the series of some owners, in order. Index: datapoint_calculated's key.
select owner, key, verdict, ts, payload -> 'value'
from tocsin.datapoint_calculated
where seq >= %(first_seq)s and owner = any (%(owners)s::text[]) and verdict in ('stale', 'fresh') and ts <= %(until)s
order by owner collate "C", seq
