-- Remove the timers of runs that are locked, after the phase of the timers. It waits for none: one that is
-- locked is being fired, and has no effect on a run that has ended.
with locked as (
    select t.kind, t.ref, t.key
    from tocsin.timer t
    where t.kind = 'runbook-wait' and t.ref = any(%(refs)s::text[])
    order by t.ref, t.key
    for update skip locked
)
delete from tocsin.timer t using locked l where (t.kind, t.ref, t.key) = (l.kind, l.ref, l.key)
