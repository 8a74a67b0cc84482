-- The schema as executable SQL, one statement per row. The order depends on dependencies (rank),
-- then on names, so it is the same on every server. Partitions are left out: they are data, and
-- tocsin.extend_log creates them. Not-null constraints are written with their columns, as before
-- Postgres 18.
with relation as (
    select c.oid, c.oid::regclass::text as name, c.relkind, c.reltype, c.reloptions, c.relrowsecurity, c.relowner, c.relacl
    from pg_class c
    where (c.relnamespace = 'tocsin'::regnamespace or c.oid = 'public.tocsin_migration'::regclass)
      and not c.relispartition
),
line (relation, position, definition) as (
    select t.oid, a.attnum::integer,
           '    ' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
           || case when a.attnotnull then ' not null' else '' end
           || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
           || case a.attidentity when 'a' then ' generated always as identity' else '' end
    from relation t
    join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
    where t.relkind in ('r', 'p', 'c')
    union all
    select t.oid, 10000 + row_number() over (partition by t.oid order by k.conname)::integer,
           '    constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
    from relation t
    join pg_constraint k on k.conrelid = t.oid and k.contype not in ('f', 'n')
),
body (relation, definition) as (
    select l.relation, e'(\n' || string_agg(l.definition, e',\n' order by l.position) || e'\n)'
    from line l
    group by l.relation
),
routine as (
    select p.oid, p.oid::regprocedure::text as name, p.proowner, p.proacl,
           -- A column default or a check can only name a function that exists.
           case when exists (
               select from pg_depend d
               where d.refobjid = p.oid and d.refclassid = 'pg_proc'::regclass
                 and d.classid in ('pg_attrdef'::regclass, 'pg_constraint'::regclass)
           ) then 2 else 5 end as rank
    from pg_proc p
    where p.pronamespace = 'tocsin'::regnamespace
),
-- Objects that have a comment or privileges, with their rank.
object (rank, name, kind, catalog, oid, owner, rights) as (
    select 0, n.nspname::text, 'schema', 'pg_namespace', n.oid, n.nspowner, n.nspacl
    from pg_namespace n
    where n.nspname = 'tocsin'
    union all
    select 1, t.name, 'type', 'pg_type', t.reltype, t.relowner, t.relacl from relation t where t.relkind = 'c'
    union all
    select 3, t.name, 'table', 'pg_class', t.oid, t.relowner, t.relacl from relation t where t.relkind in ('r', 'p')
    union all
    select 6, t.name, 'view', 'pg_class', t.oid, t.relowner, t.relacl from relation t where t.relkind = 'v'
    union all
    select r.rank, r.name, 'function', 'pg_proc', r.oid, r.proowner, r.proacl from routine r
),
entry (rank, name, part, detail, definition) as (
    select 0, 'tocsin', 0, '', 'create schema tocsin;'
    union all
    select 1, t.name, 0, '', 'create type ' || t.name || ' as ' || b.definition || ';'
    from relation t
    join body b on b.relation = t.oid
    where t.relkind = 'c'
    union all
    select r.rank, r.name, 0, '', trim(trailing e'\n' from pg_get_functiondef(r.oid)) || ';'
    from routine r
    union all
    select 3, t.name, 0, '',
           'create table ' || t.name || ' ' || coalesce(b.definition, '()')
           || coalesce(' partition by ' || pg_get_partkeydef(t.oid), '')
           || coalesce(' with (' || array_to_string(t.reloptions, ', ') || ')', '') || ';'
    from relation t
    left join body b on b.relation = t.oid
    where t.relkind in ('r', 'p')
    union all
    -- A new partition gets the indexes of its parent, so none may be on the parent alone.
    select 3, t.name, 1, x.indexrelid::regclass::text, replace(pg_get_indexdef(x.indexrelid), ' ON ONLY ', ' ON ') || ';'
    from relation t
    join pg_index x on x.indrelid = t.oid
    where not exists (select from pg_constraint k where k.conindid = x.indexrelid)
    union all
    select o.rank, o.name, 2, '', format('comment on %s %s is %L;', o.kind, o.name, obj_description(o.oid, o.catalog))
    from object o
    where obj_description(o.oid, o.catalog) is not null
    union all
    select o.rank, o.name, 3, to_char(a.attnum, '0000'),
           format('comment on column %s.%I is %L;', o.name, a.attname, col_description(o.oid, a.attnum))
    from object o
    join pg_attribute a on a.attrelid = o.oid and o.catalog = 'pg_class' and a.attnum > 0 and not a.attisdropped
    where col_description(o.oid, a.attnum) is not null
    union all
    select o.rank, o.name, 4, '', format('revoke all on %s %s from public;', replace(o.kind, 'view', 'table'), o.name)
    from object o
    where o.rights is not null
    union all
    select o.rank, o.name, 5, format('%s %s', g.grantee::regrole, g.privilege_type),
           format('grant %s on %s %s to %s;', lower(g.privilege_type), replace(o.kind, 'view', 'table'), o.name,
                  case g.grantee when 0 then 'public' else g.grantee::regrole::text end)
    from object o
    cross join lateral aclexplode(o.rights) g
    where g.grantee <> o.owner
    union all
    -- A table of one row is created with that row, and before its guards.
    select 3, t.name, 6, '', 'insert into ' || t.name || ' default values;'
    from relation t
    join pg_attribute a on a.attrelid = t.oid and a.attname = 'only_row'
    where t.relkind = 'r'
    union all
    select 4, t.name, 0, k.conname::text,
           format('alter table %s add constraint %I %s;', t.name, k.conname, pg_get_constraintdef(k.oid))
    from relation t
    join pg_constraint k on k.conrelid = t.oid and k.contype = 'f'
    union all
    select 6, t.name, 0, '', 'create view ' || t.name || e' as\n' || pg_get_viewdef(t.oid)
    from relation t
    where t.relkind = 'v'
    union all
    select 7, t.name, 0, '', 'alter table ' || t.name || ' enable row level security;'
    from relation t
    where t.relrowsecurity
    union all
    select 7, t.name, 1, p.policyname::text,
           format('create policy %I on %s as %s for %s to %s', p.policyname, t.name, lower(p.permissive), lower(p.cmd),
                  array_to_string(p.roles, ', '))
           || coalesce(' using (' || p.qual || ')', '') || coalesce(' with check (' || p.with_check || ')', '') || ';'
    from relation t
    join pg_policies p on format('%I.%I', p.schemaname, p.tablename) = t.name
    union all
    select 7, t.name, 2, g.tgname::text, pg_get_triggerdef(g.oid) || ';'
    from relation t
    join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
    union all
    select 8, '', 0, to_char(m.number, '0000'),
           format('insert into public.tocsin_migration (number, name, checksum) values (%s, %L, %L);',
                  m.number, m.name, m.checksum)
    from public.tocsin_migration m
    union all
    select 9, '', 0, '', 'select tocsin.extend_log();'
)
select row_number() over (partition by e.rank, e.name order by e.part, e.detail collate "C") = 1 as begins_object,
       e.definition
from entry e
order by e.rank, e.name collate "C", e.part, e.detail collate "C"
