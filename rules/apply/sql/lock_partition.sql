-- Locks one partition like lock_partitions: waits for the running batch, and blocks new ones until
-- the commit.
select watermark
from tocsin.lane_partition
where lane = %(lane)s and partition = %(partition)s
for no key update
