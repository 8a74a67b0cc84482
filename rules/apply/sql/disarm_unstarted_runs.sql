-- Phase 1: deletes the timers of runs that have not started, in key order. A timer that the clock
-- is firing is waited for, and then gone: its run has started. Index: action_active, the key of
-- timer.
with locked as (
    select t.kind, t.ref, t.key
    from tocsin.action a
    join tocsin.timer t on t.kind = 'runbook-wait' and t.ref = a.id::text
    where a.action_rule = any (%(rules)s::text[]) and a.state in ('gathering', 'queued')
    order by t.ref, t.key
    for update of t
)
delete from tocsin.timer t using locked l where (t.kind, t.ref, t.key) = (l.kind, l.ref, l.key)
