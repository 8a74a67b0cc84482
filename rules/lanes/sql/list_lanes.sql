-- Each partition with its holder while the lease runs, its position, and the age of its watermark.
select lane, partition, case when held_until > tocsin.instant() then holder end, last_seq,
       extract(epoch from tocsin.instant() - watermark)::float8
from tocsin.lane_partition
order by lane, partition
