-- The roles of a list that the server does not have.
select name from unnest(%(roles)s::text[]) as name
where not exists (select from pg_roles r where r.rolname = name)
