-- Insert watched series that are not due for an hour.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select 'watchdog', 'plant-' || g / 100, 'dsp.k' || mod(g, 100), %(at)s::timestamptz + g * interval '1 ms',
       %(at)s::timestamptz + g * interval '1 ms', jsonb_build_object('owner', 'plant-' || g / 100, 'within_us', 2500000)
from generate_series(1, %(count)s::integer) g
