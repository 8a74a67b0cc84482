-- Insert timers far in the future in one transaction, as an import does, for bench/growth.py.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at)
select 'runbook-wait', gen_random_uuid()::text, '0', %(at)s::timestamptz + n * interval '1 ms', %(at)s
from generate_series(1, %(count)s::integer) n
