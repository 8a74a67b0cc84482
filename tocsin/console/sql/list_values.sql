-- The newest values of a series within a time, the oldest first. Locks nothing. Index: datapoint_series.
select d.arrived_at, d.value
from (
    select n.arrived_at, n.value
    from tocsin.datapoint n
    where n.owner = %(owner)s and n.key = any(%(keys)s) and n.arrived_at between %(start)s and %(end)s
    order by n.arrived_at desc
    limit %(limit)s
) d
order by d.arrived_at
