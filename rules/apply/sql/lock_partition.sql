-- One partition, as lock_partitions: waits for the batch under way, and keeps new ones out until the commit.
select watermark
from tocsin.lane_partition
where lane = %(lane)s and partition = %(partition)s
for no key update
