-- Remove every timer of these runs, in key order. The statement waits for a fire that is being
-- committed: its step is then due, and is cancelled.
with locked as (
    select t.kind, t.ref, t.key
    from tocsin.timer t
    where t.kind = 'runbook-wait' and t.ref = any(%(refs)s::text[])
    order by t.ref, t.key
    for update
)
delete from tocsin.timer t using locked l where (t.kind, t.ref, t.key) = (l.kind, l.ref, l.key)
