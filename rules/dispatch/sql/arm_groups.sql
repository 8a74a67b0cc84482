-- Arm the timers that end the group_wait of gathering runs, in key order.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
select 'runbook-wait', item.ref, 'group', greatest(item.at, tocsin.instant()), item.at
from unnest(%(refs)s::text[], %(at)s::timestamptz[]) as item (ref, at)
order by item.ref
on conflict on constraint timer_pkey do nothing
