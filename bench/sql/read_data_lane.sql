-- The position of each partition of the data lane, and whether a worker holds it.
select partition, last_seq, holder is not null from tocsin.lane_partition where lane = 'data'
