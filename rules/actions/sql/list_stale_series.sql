-- Stale series, the longest first, and their number. Locks nothing. Index: current_value_stale.
select c.owner, c.key, c.value, c.ts, c.arrived_at, c.stale_since, count(*) over () as count
from tocsin.current_value c
where c.freshness = 'stale'
order by c.stale_since, c.owner, c.key
limit %(limit)s
