-- Systems, to be rolled up by the next append, which is that of this transaction. Under the log's lock.
insert into tocsin.system_health as h (system, degraded_at, outage_at)
select n.name, %(degraded_at)s, %(outage_at)s
from unnest(%(names)s::text[]) as n (name)
order by n.name
on conflict (system) do update set degraded_at = excluded.degraded_at, outage_at = excluded.outage_at, dirty = true
