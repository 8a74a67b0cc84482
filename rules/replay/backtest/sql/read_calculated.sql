-- The calculated datapoints of the series of some owners, and of the systems of that name, in order.
-- Index: datapoint_calculated's key.
select owner, key, kind, ts, case when kind = 'health' then payload else payload -> 'value' end
from tocsin.datapoint_calculated
where seq >= %(first_seq)s and owner = any (%(owners)s::text[]) and ts <= %(until)s
order by owner collate "C", seq
