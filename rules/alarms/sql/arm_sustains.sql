-- Arms sustains in key order; an armed one moves. A sustain whose instant has passed is due at
-- once.
insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload)
select 'for-sustain', item.ref, item.key, greatest(item.at, tocsin.instant()), item.at, item.payload
from unnest(%(refs)s::text[], %(keys)s::text[], %(at)s::timestamptz[], %(payloads)s::jsonb[]) as item (ref, key, at, payload)
order by item.ref, item.key
on conflict on constraint timer_pkey do update
    set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
        attempts = 0, last_error = null, parked_at = null
