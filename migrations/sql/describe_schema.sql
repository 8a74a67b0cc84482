-- The schema tocsin as text, one entry per row, in an order that depends on names alone. Partitions are left out: they
-- are data (tocsin.extend_log makes them). Not-null constraints are said with their columns, as before Postgres 18.
with relation as (
    select c.oid, c.relname, c.relkind, c.reloptions, c.relrowsecurity
    from pg_class c
    where c.relnamespace = 'tocsin'::regnamespace and not c.relispartition
),
entry (rank, name, part, definition) as (
    select 1, t.relname, 0,
           case t.relkind when 'c' then 'type ' else 'table ' end || t.relname
           || coalesce(' partition by ' || pg_get_partkeydef(t.oid), '')
           || coalesce(' with (' || array_to_string(t.reloptions, ', ') || ')', '')
           || case when t.relrowsecurity then ' row security' else '' end
    from relation t
    where t.relkind in ('r', 'p', 'c')
    union all
    select 1, t.relname, a.attnum,
           '    ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
           || case when a.attnotnull then ' not null' else '' end
           || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
           || case a.attidentity when 'a' then ' generated always as identity' else '' end
    from relation t
    join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
    where t.relkind in ('r', 'p', 'c')
    union all
    select 1, t.relname, 10000 + row_number() over (partition by t.oid order by c.conname)::integer,
           '    constraint ' || c.conname || ' ' || pg_get_constraintdef(c.oid)
    from relation t
    join pg_constraint c on c.conrelid = t.oid and c.contype <> 'n'
    union all
    select 2, i.relname, 0, pg_get_indexdef(i.oid)
    from relation i
    where i.relkind in ('i', 'I') and not exists (select from pg_constraint c where c.conindid = i.oid)
    union all
    select 3, p.proname, row_number() over (partition by p.proname order by p.oid)::integer,
           trim(trailing e'\n' from pg_get_functiondef(p.oid)) || coalesce(e'\n' || 'rights ' || p.proacl::text, '')
    from pg_proc p
    where p.pronamespace = 'tocsin'::regnamespace
    union all
    select 4, t.relname || ' ' || g.tgname, 0, pg_get_triggerdef(g.oid)
    from relation t
    join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
    union all
    select 5, p.tablename || ' ' || p.policyname, 0,
           format('policy %s on %s for %s using %s', p.policyname, p.tablename, p.cmd, p.qual)
    from pg_policies p
    join relation t on t.relname = p.tablename and p.schemaname = 'tocsin'
)
select e.rank, e.name, e.part, e.definition
from entry e
order by e.rank, e.name collate "C", e.part
