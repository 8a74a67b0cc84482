-- Each partition with its holder while the lease runs, its position, the age of its watermark, and
-- why its last canary was not accepted.
select lane, partition, case when held_until > (select tocsin.instant()) then holder end, last_seq,
       extract(epoch from tocsin.instant() - watermark)::float8, canary_error
from tocsin.lane_partition
order by lane, partition
