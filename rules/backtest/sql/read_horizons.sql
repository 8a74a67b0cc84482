-- Up to when everything due in each partition has been concluded: what was read, but for a sustain or a watchdog that the clock has
-- still to fire, and a silence that the rules have not heard of. Locks nothing; one snapshot.
with undone as (
    select s.lane, s.partition, t.nominal_at as at
    from tocsin.timer t
    join tocsin.rule_state s on s.alarm_id = t.ref::uuid
    where t.kind = 'for-sustain' and t.key <> 'snooze'
    union all
    select 'data', c.partition,
           greatest(t.nominal_at, c.arrived_at + (t.payload ->> 'within_us')::bigint * interval '1 microsecond')
    from tocsin.timer t
    join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
    where t.kind = 'watchdog'
    union all
    select 'data', c.partition, c.stale_since
    from tocsin.current_value c
    where c.freshness = 'stale' and c.heard_stale_since is distinct from c.stale_since
)
select p.lane, p.partition,
       least(p.complete_until, min(u.at) - interval '1 microsecond')
from tocsin.ingest_partition p
left join undone u on u.lane = p.lane and u.partition = p.partition
group by p.lane, p.partition
order by p.lane, p.partition
