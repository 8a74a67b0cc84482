-- Schedules that wait for their next fire, the next one first, of the owners that the caller may view.
-- Walks the index timer_due of ticks.
select s.id, s.owner, s.name, s.type, s.status, t.fire_at, s.created_at, s.payload
from tocsin.timer t
join tocsin.schedule s on s.id::text = t.ref
where t.kind = 'schedule-tick' and t.key = '' and s.status = 'active'
  and s.owner not like 'tocsin:%%'
  and tocsin.owner_matches(s.owner, %(owners)s)
order by t.fire_at
limit %(limit)s
