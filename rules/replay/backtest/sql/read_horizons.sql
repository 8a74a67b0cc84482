-- The instant up to which everything due in each partition has been recorded: its watermark, limited by
-- sustains and watchdogs that the clock has still to fire and by stale series that the rules have not
-- handled, and by deadlines of heartbeats and ends of windows that no worker has handled; and the instants up to which health is decided and windows are calculated. Locks nothing; one
-- snapshot.
with pending as (
    select s.lane, s.partition, t.nominal_at as at
    from tocsin.timer t
    join tocsin.rule_state s on s.alarm_id = t.ref::uuid
    where t.kind = 'for-sustain' and t.key <> 'snooze'
    union all
    select 'data', c.partition,
           greatest(t.nominal_at, tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint))
    from tocsin.timer t
    join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
    join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
    where t.kind = 'watchdog'
    union all
    select 'data', c.partition, c.stale_since
    from tocsin.current_value c
    where c.freshness = 'stale' and c.handled_stale_since is distinct from c.stale_since
    union all
    select s.lane, s.partition, s.recheck_at
    from tocsin.rule_state s
    where s.recheck_at is not null
),
horizon as (
    select p.lane, p.partition, least(p.watermark, min(u.at) - interval '1 microsecond') as until
    from tocsin.lane_partition p
    left join pending u on u.lane = p.lane and u.partition = p.partition
    group by p.lane, p.partition
)
select lane, partition, until from horizon
union all
select 'health', 0,
       case when count(*) = count(h.until) then
           least(min(h.until), (select min(f.at) - interval '1 microsecond' from tocsin.member_observation f))
       end
from horizon h
where h.lane = 'data'
union all
select 'calc', 0, (select p.until from tocsin.calc_position p)
order by 1, 2
