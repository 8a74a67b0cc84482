-- The number of partitions of the data lane, and the last sequence that any of them has read.
select count(*), coalesce(max(last_seq), 0) from tocsin.lane_partition where lane = 'data'
