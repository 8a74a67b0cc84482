-- Phase 1: the timers of actions that have not begun, in key order. One that the clock is firing is waited for, and then
-- gone: its action has begun. Index: action_under_way, timer's key.
with victims as (
    select t.kind, t.ref, t.key
    from tocsin.action a
    join tocsin.timer t on t.kind = 'runbook-wait' and t.ref = a.id::text
    where a.action_rule = any (%(rules)s::text[]) and a.state in ('gathering', 'queued')
    order by t.ref, t.key
    for update of t
)
delete from tocsin.timer t using victims v where (t.kind, t.ref, t.key) = (v.kind, v.ref, v.key)
