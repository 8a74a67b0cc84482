-- Active schedules of the owners of some patterns with their pending ticks, next fire first. Schedules of
-- Tocsin itself (owner `tocsin:...`) are left out.
select s.owner, s.name, s.title, s.recurrence, s.status, t.nominal_at, t.fire_at, t.attempts, t.last_error, t.parked_at
from tocsin.schedule s
join tocsin.timer t on t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = ''
where s.status = 'active' and s.owner not like 'tocsin:%%' and tocsin.owner_matches(s.owner, %(owners)s)
order by t.fire_at, s.owner, s.name
limit %(limit)s
