-- A page of the stale series with their last datapoints, those of an owner together. Index: current_value's key. Locks nothing.
select partition, owner, key, arrived_at, value, ts, labels
from tocsin.current_value
where freshness = 'stale' and (owner, key) > (%(owner)s, %(key)s)
order by owner, key
limit %(most)s
