-- The partitions of the log, including those being detached, with their range, their size, and when
-- the last record of the range was committed if the log has gone beyond it. Index: the key of
-- log_commit.
select c.relname::text, substring(c.relname from '_([0-9]+)$')::bigint as start, h.partition_size,
       pg_total_relation_size(c.oid)::bigint,
       (select m.recorded_at from tocsin.log_commit m
        where m.last_seq >= substring(c.relname from '_([0-9]+)$')::bigint + h.partition_size - 1
          and exists (select from tocsin.log_commit n
                      where n.last_seq >= substring(c.relname from '_([0-9]+)$')::bigint + h.partition_size)
        order by m.last_seq limit 1) as newest_at
from tocsin.log_head h, unnest(tocsin.log_tables()) as t (name)
join pg_class c on c.relnamespace = 'tocsin'::regnamespace and c.relkind = 'r' and c.relname ~ ('^' || t.name || '_[0-9]+$')
order by start, c.relname
