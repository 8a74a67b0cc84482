-- How far each partition of the data lane is read, and whether somebody holds it.
select partition, last_seq, holder is not null from tocsin.lane_partition where lane = 'data'
