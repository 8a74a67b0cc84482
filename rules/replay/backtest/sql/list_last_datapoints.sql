-- The last datapoint before an instant of each series of some owners. Pruning keeps the last one of a
-- series in datapoint_kept. Index: datapoint_series, datapoint_kept's key.
select c.owner, c.key, d.arrived_at, d.value, d.ts, d.labels
from tocsin.current_value c
cross join lateral (
    (select dp.arrived_at, dp.value, dp.ts, dp.labels
     from tocsin.datapoint dp
     where dp.owner = c.owner and dp.key = c.key and dp.arrived_at < %(at)s
     order by dp.arrived_at desc, dp.stream_seq desc, dp.position desc
     limit 1)
    union all
    select k.arrived_at, k.value, k.ts, k.labels
    from tocsin.datapoint_kept k
    where k.owner = c.owner and k.key = c.key and k.arrived_at < %(at)s
    limit 1
) d
where c.owner = any (%(owners)s::text[]) and c.first_arrived_at < %(at)s
order by c.owner collate "C", c.key
