-- Arm the timers that end the group_wait of gathering runs, in key order.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
select 'runbook-wait', g.ref, 'group', greatest(g.at, tocsin.instant()), g.at
from unnest(%(refs)s::text[], %(at)s::timestamptz[]) as g (ref, at)
order by g.ref
on conflict on constraint timer_pkey do nothing
