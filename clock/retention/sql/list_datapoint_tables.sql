-- The partitions of datapoints, including those being detached, with their day and size.
select to_date(substring(c.relname from '_([0-9]{8})$'), 'YYYYMMDD'), c.relname::text, pg_total_relation_size(c.oid)::bigint
from pg_class c
where c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'r' and c.relname ~ '^datapoint_[0-9]{8}$'
order by 1
