-- Insert timers far in the future, which no scan should touch.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
select 'schedule-tick', 'pending-' || n, '', %(at)s::timestamptz + n * interval '1 ms', %(at)s
from generate_series(1, %(count)s::integer) n
