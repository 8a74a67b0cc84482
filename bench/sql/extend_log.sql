-- Creates the partitions of a log that has existed for a while.
select tocsin.extend_log(%(count)s::integer)
