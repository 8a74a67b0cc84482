-- Errors of timers that failed and are not parked, the first to be retried first. A retry is at most
-- five minutes away. Index: timer_due, per kind.
select failing.last_error
from unnest(array['schedule-tick', 'for-sustain', 'runbook-wait', 'watchdog']) as kinds (kind)
cross join lateral (
    select t.last_error, t.fire_at
    from tocsin.timer t
    where t.kind = kinds.kind and t.parked_at is null and t.last_error is not null
      and t.fire_at <= (select tocsin.instant()) + interval '5 minutes'
    order by t.fire_at
    limit %(limit)s
) as failing
order by failing.fire_at
limit %(limit)s
