-- The backstop: the oldest timer of a kind before the mark, which the scan no longer sees. It may
-- walk over dead tuples, so it runs on its own connection for a few percent of the time, and only
-- lowers the mark.
select min(t.fire_at)
from tocsin.timer t
where t.kind = %(kind)s and t.parked_at is null and t.fire_at < %(mark)s
