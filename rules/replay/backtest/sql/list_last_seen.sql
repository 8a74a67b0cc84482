-- The last datapoint before an instant of each series of some owners; one from before all that are left was kept aside. Index:
-- datapoint_series, datapoint_kept's key.
select c.owner, c.key, d.arrived_at, d.value, d.ts, d.labels
from tocsin.current_value c
cross join lateral (
    (select one.arrived_at, one.value, one.ts, one.labels
     from tocsin.datapoint one
     where one.owner = c.owner and one.key = c.key and one.arrived_at < %(at)s
     order by one.arrived_at desc, one.stream_seq desc, one.position desc
     limit 1)
    union all
    select k.arrived_at, k.value, k.ts, k.labels
    from tocsin.datapoint_kept k
    where k.owner = c.owner and k.key = c.key and k.arrived_at < %(at)s
    limit 1
) d
where c.owner = any (%(owners)s::text[]) and c.first_arrived_at < %(at)s
order by c.owner collate "C", c.key
