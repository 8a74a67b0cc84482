-- Move ticks to their occurrences under the new tz data, in key order. A tick that fired or was
-- edited since it was read is left as it is: it was computed with the new data. A tick that another
-- transaction has locked is skipped. Returns the number of moved ticks as its row count.
update tocsin.timer t
set nominal_at = d.nominal_at, fire_at = d.fire_at, identity = d.identity,
    identity_at = d.nominal_at
from (
    select m.*
    from unnest(%(refs)s::text[], %(generations)s::bigint[], %(seen)s::timestamptz[], %(nominal_at)s::timestamptz[],
                %(fire_at)s::timestamptz[], %(identities)s::text[])
        as m (ref, generation, seen, nominal_at, fire_at, identity)
    join tocsin.timer locked on locked.kind = 'schedule-tick' and locked.ref = m.ref and locked.key = ''
    order by m.ref
    for update of locked skip locked
) as d
where t.kind = 'schedule-tick' and t.ref = d.ref and t.key = ''
  and t.generation = d.generation and t.nominal_at = d.seen
