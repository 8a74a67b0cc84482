-- The series that a batch can concern, with their watchdogs: those that it brings datapoints for, those of the same owners
-- whose watchdog is due, and those whose staleness the rules have not heard of. Locks nothing.
-- Index: the keys of current_value and timer, current_value_stale. Row by row (`offset 0`): whatever the planner
-- believes, reading all the watchdogs there are would be wrong. `refs` are the owners' tokens, `places` count them from 1.
-- Value and labels only of series that can be stale by then: of the others they are not asked for, and cost the most.
with owners as (
    select o.* from unnest(%(owners)s::text[], %(refs)s::text[]) with ordinality as o (owner, ref, place)
),
concerned as (
    select o.owner, o.ref, b.key
    from unnest(%(places)s::integer[], %(keys)s::text[]) as b (place, key)
    join owners o on o.place = b.place
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
        where c.owner = o.owner and c.freshness = 'stale' and c.handled_stale_since is distinct from c.stale_since
        offset 0
    ) unheard
)
select c.owner, c.key, c.arrived_at,
       case when c.freshness = 'fresh' and t.nominal_at > %(until)s then null else c.value end,
       c.ts,
       case when c.freshness = 'fresh' and t.nominal_at > %(until)s then null else c.labels end,
       c.stale_since, c.handled_stale_since,
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
