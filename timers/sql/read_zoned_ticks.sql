-- Ticks of schedules that depend on a zone: all but `every`, and `at` given as an instant. Locks
-- nothing; move_ticks compares. `armed_after`: no occurrence before the schedule's last edit
-- counts.
select t.ref, t.generation, t.nominal_at, t.last_nominal_at, s.updated_at, s.recurrence, s.owner, s.name, s.spread,
       t.identity
from tocsin.timer t
join tocsin.schedule s on s.id = t.ref::uuid and s.generation = t.generation
where t.kind = 'schedule-tick'
  and not s.recurrence ? 'every'
  and coalesce(s.recurrence ->> 'at', '') not like '%%Z'
  and s.recurrence ->> 'tz' <> 'UTC'
order by t.ref
