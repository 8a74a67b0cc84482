-- Delete watchdogs in key order. How many of those marked as lapsed were there: fewer than given means that the clock was
-- first, and the caller judges again.
with given as (
    select g.ref, g.key, g.lapsed
    from unnest(%(refs)s::text[], %(keys)s::text[], %(lapsed)s::boolean[]) as g (ref, key, lapsed)
),
victims as materialized (
    select t.ref, t.key, g.lapsed
    from given g
    join tocsin.timer t on t.kind = 'watchdog' and t.ref = g.ref and t.key = g.key
    order by t.ref, t.key
    for update of t
),
gone as (
    delete from tocsin.timer t using victims v
    where t.kind = 'watchdog' and t.ref = v.ref and t.key = v.key
    returning v.lapsed
)
select count(*) filter (where lapsed) from gone
