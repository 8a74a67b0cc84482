-- Timers by kind, ref and key. For a schedule tick, the ref may be the name of the schedule. Locks
-- nothing. Index: timer_pkey; few schedules have the same name.
select t.kind, t.ref, t.key, t.fire_at, t.attempts, t.last_error, t.parked_at, s.owner, s.name
from tocsin.timer t
left join tocsin.schedule s on t.kind = 'schedule-tick' and s.id::text = t.ref
where t.kind = %(kind)s and t.key = %(key)s
  and t.ref in (
      select %(ref)s::text
      union all
      select named.id::text from tocsin.schedule named where %(kind)s = 'schedule-tick' and named.name = %(ref)s)
order by t.ref
