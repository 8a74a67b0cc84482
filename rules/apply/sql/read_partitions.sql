-- How far each partition has read; locks nothing.
select lane, partition, watermark from tocsin.lane_partition
