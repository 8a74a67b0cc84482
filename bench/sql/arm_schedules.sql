-- Every schedule is due, a microsecond apart.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
select 'schedule-tick', s.id::text, '', %(at)s::timestamptz + (row_number() over ()) * interval '1 microsecond', %(at)s
from tocsin.schedule s
on conflict on constraint timer_pkey do update
set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at,
    last_nominal_at = null
