-- For each kind: timers that are not due, timers that are due, and the age of the oldest due one.
-- Locks nothing. Index: timer_due, twice for each kind. At most 10,000 are counted one by one. If
-- more are armed, the planner statistics give their number, so that a million cost as much
-- as ten thousand.
select k.kind,
       case when armed.count < 10000 then armed.count else greatest(armed.count, estimate.count) end,
       due.count,
       greatest(extract(epoch from n.now - due.oldest), 0)::float8
from (select tocsin.instant() as now) n
cross join unnest(array['schedule-tick', 'for-sustain', 'runbook-wait', 'watchdog']) as k (kind)
cross join lateral (
    select count(*) as count
    from (select from tocsin.timer t where t.kind = k.kind and t.parked_at is null and t.fire_at > n.now limit 10000) t
) armed
cross join lateral (
    select count(*) as count, min(t.fire_at) as oldest
    from (select t.fire_at from tocsin.timer t where t.kind = k.kind and t.parked_at is null and t.fire_at <= n.now
          order by t.fire_at limit 10000) t
) due
left join lateral (
    select round(c.reltuples * f.frequency)::bigint as count
    from pg_class c
    join pg_stats s on s.schemaname = 'tocsin' and s.tablename = 'timer' and s.attname = 'kind'
    cross join unnest(s.most_common_vals::text::text[], s.most_common_freqs) as f (kind, frequency)
    where c.oid = 'tocsin.timer'::regclass and f.kind = k.kind
) estimate on true
order by k.kind
