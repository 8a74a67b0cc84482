-- The rights on every table and view of the schema but partitions, which no role uses by name; a table
-- without any has one row. PUBLIC is written as such.
select c.relname::text, coalesce(r.rolname::text, case when g.grantee = 0 then 'PUBLIC' end) as grantee,
       lower(g.privilege_type) as right, c.relrowsecurity
from pg_class c
left join lateral aclexplode(c.relacl) g on g.grantee <> c.relowner
left join pg_roles r on r.oid = g.grantee
where c.relnamespace = 'tocsin'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
order by 1, 2, 3
