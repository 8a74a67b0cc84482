-- Every timer of these actions, in key order. A fire under way is waited for: it wins, and its step is cancelled as due.
with victims as (
    select t.kind, t.ref, t.key
    from tocsin.timer t
    where t.kind = 'runbook-wait' and t.ref = any(%(refs)s::text[])
    order by t.ref, t.key
    for update
)
delete from tocsin.timer t using victims v where (t.kind, t.ref, t.key) = (v.kind, v.ref, v.key)
