-- The position of a partition of the data lane. Locks nothing. Index: the key.
select last_seq from tocsin.lane_partition where lane = 'data' and partition = %(partition)s
