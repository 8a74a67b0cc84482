-- Stale series, the longest first. Locks nothing. Index: current_value_stale.
select c.owner, c.key, c.value, c.ts, c.arrived_at, c.stale_since
from tocsin.current_value c
where c.freshness = 'stale'
order by c.stale_since, c.owner, c.key
limit %(limit)s
