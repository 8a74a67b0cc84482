-- Phase 1: some sustains, in key order. One that the clock is firing is waited for, and then gone.
with victims as (
    select t.kind, t.ref, t.key
    from unnest(%(refs)s::text[], %(keys)s::text[]) as d (ref, key)
    join tocsin.timer t on t.kind = 'for-sustain' and t.ref = d.ref and t.key = d.key
    order by t.ref, t.key
    for update of t
)
delete from tocsin.timer t using victims v where (t.kind, t.ref, t.key) = (v.kind, v.ref, v.key)
