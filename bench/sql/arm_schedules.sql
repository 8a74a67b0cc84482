-- Makes every schedule due, a microsecond apart. Each tick has the identity of its occurrence, as
-- armed ones do.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, identity, identity_at)
select 'schedule-tick', s.id::text, '', %(at)s::timestamptz + (row_number() over ()) * interval '1 microsecond', %(at)s,
       to_char(%(at)s::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), %(at)s
from tocsin.schedule s
on conflict on constraint timer_pkey do update
set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, identity = excluded.identity,
    identity_at = excluded.identity_at, last_nominal_at = null
