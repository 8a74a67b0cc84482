-- The working set, next first; optionally of one kind, or the parked ones only.
select kind, ref, key, fire_at, nominal_at, generation, attempts, last_error, parked_at,
       (select s.name from tocsin.schedule s where t.kind = 'schedule-tick' and s.id::text = t.ref) as schedule
from tocsin.timer t
where (%(kind)s::text is null or kind = %(kind)s) and (not %(parked)s or parked_at is not null)
order by fire_at, kind, ref, key
limit %(limit)s
