-- Sessions of services that run as a superuser, or as the owner of the schema or a member of it. The
-- name of a session is visible to every role.
select split_part(a.application_name, ' ', 2) as service, a.usename::text,
       case when r.rolsuper then 'a superuser' else 'the owner of the schema' end
from pg_stat_activity a
join pg_roles r on r.oid = a.usesysid
join pg_namespace n on n.nspname = 'tocsin'
where a.datname = current_database()
  and split_part(a.application_name, ' ', 1) = 'tocsin'
  and split_part(a.application_name, ' ', 2) in ('clock', 'cdc', 'worker', 'api')
  and (r.rolsuper or pg_has_role(r.oid, n.nspowner, 'member'))
group by 1, 2, 3
order by 1
