-- The last datapoint before an instant of each series of some owners. Index: datapoint_series.
select c.owner, c.key, d.arrived_at, d.value, d.ts, d.labels
from tocsin.current_value c
cross join lateral (
    select * from tocsin.datapoint one
    where one.owner = c.owner and one.key = c.key and one.arrived_at < %(at)s
    order by one.arrived_at desc, one.stream_seq desc, one.position desc
    limit 1
) d
where c.owner = any (%(owners)s::text[]) and c.first_arrived_at < %(at)s
order by c.owner collate "C", c.key
