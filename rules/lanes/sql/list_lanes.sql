-- Each partition with its holder while that one is taken for alive, how far it is and how long ago that was.
select lane, partition, case when held_until > tocsin.instant() then holder end, last_seq,
       extract(epoch from tocsin.instant() - watermark)::float8
from tocsin.lane_partition
order by lane, partition
