-- Phase 1: no watchdogs for these keys any more, locked in key order.
with victims as materialized (
    select t.ref, t.key
    from tocsin.timer t
    where t.kind = 'watchdog' and t.key = any (%(keys)s::text[])
    order by t.ref, t.key
    for update of t
)
delete from tocsin.timer t using victims v
where t.kind = 'watchdog' and t.ref = v.ref and t.key = v.key
