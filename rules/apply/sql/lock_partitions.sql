-- Locks every partition of every lane, in key order: waits for the running batches, and blocks new
-- ones until the commit. `no key update`, because a foreign key of rule_state must not wait.
select lane, partition, watermark
from tocsin.lane_partition
order by lane, partition
for no key update
