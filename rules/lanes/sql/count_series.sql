-- The number of series of each owner, and of all owners by the estimate of the last analyze. Reads the
-- primary key of current_value. No lock.
select c.owner, count(*), (select greatest(reltuples, 0)::bigint from pg_class where oid = 'tocsin.current_value'::regclass)
from tocsin.current_value c
where c.owner = any(%(owners)s)
group by c.owner
