-- The series that a batch can concern, with their watchdogs: those with datapoints in the batch,
-- those of the same owners whose watchdog is due, and those whose staleness the rules have not
-- processed. Locks nothing.
-- Index: the keys of current_value and timer, current_value_stale. `offset 0` forces one lookup per
-- row: a plan that reads all watchdogs would be far slower, and the planner may choose it. `refs`
-- are the tokens of the owners; `owner_numbers` number the owners of `keys` from 1. Value and
-- labels cost the most, so they are read only for series that can be stale by `until`.
with owners as (
    select o.* from unnest(%(owners)s::text[], %(refs)s::text[]) with ordinality as o (owner, ref, number)
),
concerned as (
    select o.owner, o.ref, b.key
    from unnest(%(owner_numbers)s::integer[], %(keys)s::text[]) as b (owner_number, key)
    join owners o on o.number = b.owner_number
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
    select o.owner, o.ref, unhandled.key
    from owners o
    cross join lateral (
        select c.key
        from tocsin.current_value c
        where c.owner = o.owner and c.freshness = 'stale' and c.handled_stale_since is distinct from c.stale_since
        offset 0
    ) unhandled
)
select c.owner, c.key, c.arrived_at,
       case when c.freshness = 'fresh' and t.nominal_at > %(until)s then null else c.value end,
       c.ts,
       case when c.freshness = 'fresh' and t.nominal_at > %(until)s then null else c.labels end,
       c.stale_since, c.handled_stale_since,
       (t.payload ->> 'within_us')::bigint * interval '1 microsecond', t.nominal_at
from concerned s
cross join lateral (
    select * from tocsin.current_value v where v.owner = s.owner and v.key = s.key offset 0
) c
left join lateral (
    select w.payload, w.nominal_at
    from tocsin.timer w
    where w.kind = 'watchdog' and w.ref = s.ref and w.key = s.key
    offset 0
) t on true
