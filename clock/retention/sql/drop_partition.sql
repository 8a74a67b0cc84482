-- Detach and drop a partition as the owner of the schema (tocsin.drop_partition); waits briefly for locks.
select tocsin.drop_partition(%(table)s)
