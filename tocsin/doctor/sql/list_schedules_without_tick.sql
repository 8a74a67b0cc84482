-- Active schedules without a tick: they never fire. Locks nothing. Index: timer_pkey.
select s.name
from tocsin.schedule s
where s.status = 'active'
  and not exists (
      select from tocsin.timer t where t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = '')
order by s.name
limit %(limit)s
