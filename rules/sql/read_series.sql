-- The series that a batch can concern, with their watchdogs: those that it brings datapoints for, those of the same owners
-- whose watchdog is due, and those whose staleness the rules have not heard of. Locks nothing.
-- Index: the keys of current_value and timer, current_value_stale.
with concerned as (
    select b.owner, b.key
    from unnest(%(owners)s::text[], %(keys)s::text[]) as b (owner, key)
    union
    select t.payload ->> 'owner', t.key
    from unnest(%(all_owners)s::text[]) as o (owner)
    join tocsin.timer t on t.kind = 'watchdog' and t.ref = tocsin.token(o.owner) and t.nominal_at <= %(until)s
    union
    select c.owner, c.key
    from unnest(%(all_owners)s::text[]) as o (owner)
    join tocsin.current_value c on c.owner = o.owner and c.freshness = 'stale'
        and c.heard_stale_since is distinct from c.stale_since
)
select c.owner, c.key, c.arrived_at, c.value, c.ts, c.labels, c.stale_since, c.heard_stale_since,
       (t.payload ->> 'within_us')::bigint * interval '1 microsecond', t.nominal_at
from concerned s
cross join lateral (
    select * from tocsin.current_value one where one.owner = s.owner and one.key = s.key offset 0
) c
left join tocsin.timer t on t.kind = 'watchdog' and t.ref = tocsin.token(c.owner) and t.key = c.key
