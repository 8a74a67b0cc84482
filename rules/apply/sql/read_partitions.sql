-- How far each partition has read; locks nothing.
select lane, partition, complete_until from tocsin.ingest_partition
