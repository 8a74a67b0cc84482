-- Delete sustains in key order. How many were there: fewer than given means that the clock won, and the caller judges again.
with victims as (
    select t.ref, t.key
    from unnest(%(refs)s::text[], %(keys)s::text[]) as g (ref, key)
    join tocsin.timer t on t.kind = 'for-sustain' and t.ref = g.ref and t.key = g.key
    order by t.ref, t.key
    for update of t
),
gone as (
    delete from tocsin.timer t using victims v
    where t.kind = 'for-sustain' and t.ref = v.ref and t.key = v.key
    returning t.key
)
select count(*) filter (where key <> 'snooze') from gone
