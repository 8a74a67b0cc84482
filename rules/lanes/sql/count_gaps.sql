-- The number of arrival gaps that ended in the last hour, of the partitions that had them, and the
-- start and the end of the last one. No lock. Index: arrival_gap_ended.
select count(*), count(distinct g.partition), (array_agg(g.began_at order by g.ended_at desc))[1], max(g.ended_at)
from tocsin.arrival_gap g
where g.ended_at > (select tocsin.instant()) - interval '1 hour'
