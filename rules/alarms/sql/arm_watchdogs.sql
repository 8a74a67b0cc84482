-- Arms watchdogs in key order; an armed one gets its new deadline and duration. `refs` are the
-- tokens of the owners.
insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload)
select 'watchdog', item.ref, item.key, greatest(item.deadline, tocsin.instant()), item.deadline,
       jsonb_build_object('owner', item.owner, 'within_us', item.within_us)
from unnest(%(owners)s::text[], %(refs)s::text[], %(keys)s::text[], %(deadlines)s::timestamptz[],
            %(within_us)s::bigint[])
    as item (owner, ref, key, deadline, within_us)
order by item.ref, item.key
on conflict on constraint timer_pkey do update
    set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
        attempts = 0, last_error = null, parked_at = null
