-- Timers by kind, ref and key; of a schedule's tick, the ref may be the schedule's name. Locks nothing.
-- Index: timer_pkey; schedules of one name are few.
select t.kind, t.ref, t.key, t.fire_at, t.attempts, t.last_error, t.parked_at, s.owner, s.name
from tocsin.timer t
left join tocsin.schedule s on t.kind = 'schedule-tick' and s.id::text = t.ref
where t.kind = %(kind)s and t.key = %(key)s
  and t.ref in (
      select %(ref)s::text
      union all
      select named.id::text from tocsin.schedule named where %(kind)s = 'schedule-tick' and named.name = %(ref)s)
order by t.ref
