-- Arrival gaps of the data lane that began up to the end of the window. Older ones than the window
-- count too: the last arrival of a series may lie before it. Index: the key of arrival_gap.
select partition, began_at, ended_at
from tocsin.arrival_gap
where began_at <= %(until)s
order by partition, began_at
