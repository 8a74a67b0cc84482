-- Every partition with its holder, and how long that one is still taken for alive. No lock.
select lane, partition, holder, coalesce(extract(epoch from held_until - tocsin.instant()), 0)::float8
from tocsin.lane_partition
order by lane, partition
