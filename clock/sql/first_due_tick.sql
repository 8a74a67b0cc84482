-- The first due tick by name alone: reads no other column and no other table, so it works for a row that cannot
-- be read. Index: timer_due. Locks nothing.
select t.ref, t.generation
from tocsin.timer t
where t.kind = 'schedule-tick'
  and t.parked_at is null
  and (t.fire_at, t.ref) > (%(mark)s, %(mark_ref)s)
  and t.fire_at <= %(now)s
order by t.fire_at, t.ref
limit 1
