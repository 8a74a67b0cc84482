-- When the oldest timer that is not parked is due; null without timers. Index: timer_due, per kind.
select min(oldest.fire_at)
from unnest(array['schedule-tick', 'for-sustain', 'runbook-wait', 'watchdog']) as kinds (kind)
cross join lateral (
    select t.fire_at
    from tocsin.timer t
    where t.kind = kinds.kind and t.parked_at is null
    order by t.fire_at
    limit 1
) as oldest
