-- Lock due ticks in key order and read their schedules. Rows somebody else holds are skipped, never waited for.
-- Index: timer_due. A row whose schedule is at another generation belongs to an edit that is committing:
-- it comes back without its schedule and is left alone.
with due as materialized (
    select t.ctid, t.ref, t.fire_at, t.nominal_at, t.last_nominal_at, t.generation
    from tocsin.timer t
    where t.kind = 'schedule-tick'
      and t.parked_at is null
      and (t.fire_at, t.ref) > (%(mark)s, %(mark_ref)s)
      and t.fire_at <= %(now)s
    order by t.fire_at, t.ref
    limit %(limit)s
    for update skip locked
)
select due.ctid::text, due.ref, due.fire_at, due.nominal_at, due.last_nominal_at, s.id, s.generation,
       s.recurrence::text, s.owner, s.name, s.spread, s.catch_up, s."window", s.grace, s.max_catch_up
from due
left join tocsin.schedule s
    on s.id = due.ref::uuid and s.generation = due.generation and s.status = 'active'
order by due.fire_at, due.ref
