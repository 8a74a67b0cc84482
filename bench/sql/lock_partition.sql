-- The first lock of every batch.
select from tocsin.lane_partition where lane = 'data' and partition = 0 for no key update
