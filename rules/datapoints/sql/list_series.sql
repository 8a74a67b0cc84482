-- Current values by owner and key. Index: current_value's key.
select owner, key, value, ts, labels, arrived_at, first_arrived_at, freshness, stale_since, datapoint_type
from tocsin.current_value
where (%(owner)s::text is null or owner = %(owner)s)
    and (%(key)s::text is null or key ~ %(key)s)
    and (%(freshness)s::text is null or freshness = %(freshness)s)
order by owner, key
limit %(limit)s
