-- The series that a batch can concern, with their watchdogs: those that it brings datapoints for, those of the same owners
-- whose watchdog is due, and those whose staleness the rules have not heard of. Locks nothing.
-- Index: the keys of current_value and timer, current_value_stale. Row by row (`offset 0`): whatever the planner
-- believes, reading all the watchdogs there are would be wrong. `refs` are the owners' tokens.
with owners as (
    select * from unnest(%(all_owners)s::text[], %(all_refs)s::text[]) as o (owner, ref)
),
concerned as (
    select b.owner, b.ref, b.key
    from unnest(%(owners)s::text[], %(refs)s::text[], %(keys)s::text[]) as b (owner, ref, key)
    union
    select o.owner, o.ref, due.key
    from owners o
    cross join lateral (
        select t.key
        from tocsin.timer t
        where t.kind = 'watchdog' and t.ref = o.ref and t.nominal_at <= %(until)s
        offset 0
    ) due
    union
    select o.owner, o.ref, unheard.key
    from owners o
    cross join lateral (
        select c.key
        from tocsin.current_value c
        where c.owner = o.owner and c.freshness = 'stale' and c.heard_stale_since is distinct from c.stale_since
        offset 0
    ) unheard
)
select c.owner, c.key, c.arrived_at, c.value, c.ts, c.labels, c.stale_since, c.heard_stale_since,
       (t.payload ->> 'within_us')::bigint * interval '1 microsecond', t.nominal_at
from concerned s
cross join lateral (
    select * from tocsin.current_value one where one.owner = s.owner and one.key = s.key offset 0
) c
left join lateral (
    select one.payload, one.nominal_at
    from tocsin.timer one
    where one.kind = 'watchdog' and one.ref = s.ref and one.key = s.key
    offset 0
) t on true
