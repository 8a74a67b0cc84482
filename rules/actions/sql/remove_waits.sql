-- Remove timers of one run, in key order: of the given steps, or all of them. The statement waits
-- for a fire that is being committed: the caller then finds that the version of the run has
-- changed.
with locked as (
    select t.kind, t.ref, t.key
    from tocsin.timer t
    where t.kind = 'runbook-wait' and t.ref = %(ref)s and (%(keys)s::text[] is null or t.key = any(%(keys)s::text[]))
    order by t.key
    for update
)
delete from tocsin.timer t using locked l where (t.kind, t.ref, t.key) = (l.kind, l.ref, l.key)
