-- Timers of one action that are no longer waited for, in key order: of the given steps, or all of them. A fire under way is
-- waited for; what it did is seen by the version of the action.
with victims as (
    select t.kind, t.ref, t.key
    from tocsin.timer t
    where t.kind = 'runbook-wait' and t.ref = %(ref)s and (%(keys)s::text[] is null or t.key = any(%(keys)s::text[]))
    order by t.key
    for update
)
delete from tocsin.timer t using victims v where (t.kind, t.ref, t.key) = (v.kind, v.ref, v.key)
