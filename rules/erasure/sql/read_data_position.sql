-- How far a partition of the data stream has been read.
select last_seq from tocsin.lane_partition where lane = 'data' and partition = %(partition)s
