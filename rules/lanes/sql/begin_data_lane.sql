-- Creates the partitions of the data lane, once. Their number is fixed from then on.
insert into tocsin.lane_partition (lane, partition)
select 'data', n
from generate_series(0, %(partitions)s - 1) as n
where not exists (select from tocsin.lane_partition p where p.lane = 'data')
on conflict do nothing
