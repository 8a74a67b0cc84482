-- Deletes watchdogs in key order, and returns how many of the expired ones existed. Fewer than
-- given: the clock was faster, and the caller plans again.
with given as (
    select item.ref, item.key, item.expired
    from unnest(%(refs)s::text[], %(keys)s::text[], %(expired)s::boolean[]) as item (ref, key, expired)
),
locked as materialized (
    select t.ref, t.key, item.expired
    from given item
    join tocsin.timer t on t.kind = 'watchdog' and t.ref = item.ref and t.key = item.key
    order by t.ref, t.key
    for update of t
),
deleted as (
    delete from tocsin.timer t using locked l
    where t.kind = 'watchdog' and t.ref = l.ref and t.key = l.key
    returning l.expired
)
select count(*) filter (where expired) from deleted
