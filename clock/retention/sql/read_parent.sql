-- The parent of a partition, and whether its detach was begun; no row: it is detached, or gone.
select p.relname::text, i.inhdetachpending
from pg_class c
join pg_inherits i on i.inhrelid = c.oid
join pg_class p on p.oid = i.inhparent
where c.relnamespace = 'tocsin'::regnamespace and c.relname = %(table)s
