-- Ticks of schedules that depend on a zone: all but `every`, and `at` given as an instant. Locks
-- nothing; move_ticks compares. `armed_after`: no occurrence before the schedule's last edit
-- counts. The recurrence is text, and a ref that is no id is passed over: a row that cannot be read
-- must not stop the others.
select t.ref, t.generation, t.nominal_at, t.last_nominal_at, t.last_identity, s.updated_at, s.recurrence::text,
       s.owner, s.name, s.spread, t.identity
from tocsin.timer t
join tocsin.schedule s
    on s.id = case when t.ref ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then t.ref::uuid end
    and s.generation = t.generation
where t.kind = 'schedule-tick'
  and not s.recurrence ? 'every'
  and coalesce(s.recurrence ->> 'at', '') not like '%%Z'
  and s.recurrence ->> 'tz' <> 'UTC'
order by t.ref
