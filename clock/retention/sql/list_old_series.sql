-- A chunk of series, and whether they may be deleted: no arrival for long enough, no remaining
-- datapoint, no armed watchdog, no staleness that the rules have not processed, and no alarm or
-- system of their owner. Locks nothing. Index: the keys of current_value and timer,
-- datapoint_series, system_member_owner, alarm_active_owner.
select c.owner, c.key,
       c.arrived_at < %(series_until)s
       and c.handled_stale_since is not distinct from c.stale_since
       and not exists (select from tocsin.datapoint d where d.owner = c.owner and d.key = c.key)
       and not exists (
           select from tocsin.timer t where t.kind = 'watchdog' and t.ref = tocsin.token(c.owner) and t.key = c.key)
       and not exists (select from tocsin.system_member m where m.owner = c.owner)
       and not exists (select from tocsin.alarm a where a.owner = c.owner and a.state <> 'resolved')
from tocsin.current_value c
where (c.owner, c.key) > ((%(after)s::text[])[1], (%(after)s::text[])[2])
order by c.owner, c.key
limit %(limit)s
