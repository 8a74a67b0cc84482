-- Every partition with its holder, and the seconds until the lease ends. No lock.
select lane, partition, holder, coalesce(extract(epoch from held_until - tocsin.instant()), 0)::float8
from tocsin.lane_partition
order by lane, partition
