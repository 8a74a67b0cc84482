-- Arms sustains in key order; an armed one moves. A sustain whose instant has passed is due at
-- once.
insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload)
select 'for-sustain', g.ref, g.key, greatest(g.at, tocsin.instant()), g.at, g.payload
from unnest(%(refs)s::text[], %(keys)s::text[], %(at)s::timestamptz[], %(payloads)s::jsonb[]) as g (ref, key, at, payload)
order by g.ref, g.key
on conflict on constraint timer_pkey do update
    set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
        attempts = 0, last_error = null, parked_at = null
