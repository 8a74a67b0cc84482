-- Phase 1: deletes the watchdogs of these keys, locked in key order.
with locked as materialized (
    select t.ref, t.key
    from tocsin.timer t
    where t.kind = 'watchdog' and t.key = any (%(keys)s::text[])
    order by t.ref, t.key
    for update of t
)
delete from tocsin.timer t using locked l
where t.kind = 'watchdog' and t.ref = l.ref and t.key = l.key
