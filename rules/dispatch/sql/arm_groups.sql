-- Arm the timers that end the group_wait of runs, in key order.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select 'runbook-wait', item.ref, item.key, greatest(item.at, tocsin.instant()), item.at, item.payload
from unnest(%(refs)s::text[], %(keys)s::text[], %(at)s::timestamptz[], %(payloads)s::jsonb[]) as item (ref, key, at, payload)
order by item.ref
on conflict on constraint timer_pkey do nothing
