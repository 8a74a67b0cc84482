-- Arm the timers of one run, in key order. A timer that is armed already is moved.
select tocsin.arm('runbook-wait', %(ref)s, w.key, w.fire_at, w.payload)
from (
    select * from unnest(%(keys)s::text[], %(fire_at)s::timestamptz[], %(payloads)s::jsonb[]) as item (key, fire_at, payload)
    order by item.key
) w
