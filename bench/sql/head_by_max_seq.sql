-- The newest row over all partitions.
select max(seq) from tocsin.event
