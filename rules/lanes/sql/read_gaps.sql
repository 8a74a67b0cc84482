-- Arrival gaps of a partition of the data lane that began at an instant or later, in order. No
-- lock. Index: the key of arrival_gap.
select began_at, ended_at
from tocsin.arrival_gap
where partition = %(partition)s and began_at >= %(since)s
order by began_at
