-- Every stale series with its last datapoint, those of an owner together. Index: current_value_stale. Locks nothing.
select partition, owner, key, arrived_at, value, ts, labels
from tocsin.current_value
where freshness = 'stale'
order by owner, key
