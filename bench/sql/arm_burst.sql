-- Arms the ticks of schedule_burst, from `at` on.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
select 'schedule-tick', md5('shot' || n)::uuid::text, '',
       %(at)s::timestamptz + n * %(step_us)s::integer * interval '1 microsecond',
       %(at)s::timestamptz + n * %(step_us)s::integer * interval '1 microsecond'
from generate_series(1, %(count)s::integer) n
