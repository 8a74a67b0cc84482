-- The watermark of each partition. No lock.
select lane, partition, watermark from tocsin.lane_partition
