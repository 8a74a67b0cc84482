-- A chunk of the stale series with their last datapoints, ordered by owner. No lock. Index: the key
-- of current_value.
select partition, owner, key, arrived_at, value, ts, labels
from tocsin.current_value
where freshness = 'stale' and (owner, key) > (%(owner)s, %(key)s)
order by owner, key
limit %(most)s
