-- The roles that may execute each function of the schema; a function without any has one row. Without an
-- ACL, PUBLIC may.
select p.proname::text, coalesce(r.rolname::text, case when g.grantee = 0 then 'PUBLIC' end) as grantee,
       p.prosecdef and not coalesce(p.proconfig::text, '') like '%search_path=tocsin, pg_temp%' as is_open
from pg_proc p
left join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g on g.grantee <> p.proowner
left join pg_roles r on r.oid = g.grantee
where p.pronamespace = 'tocsin'::regnamespace
order by 1, 2
