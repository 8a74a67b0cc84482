-- The instant up to which everything about members is decided. It lies before the watermarks of all
-- partitions, because more may arrive for the same instant, and before any sustain or watchdog of
-- the owner of a member that the clock has still to fire, or any staleness that the rules have not
-- processed. Null: nothing is decided, or no observation lies before the watermarks; then nothing
-- else is read, as while a partition is hours behind. Locks nothing.
-- Index: alarm_active_owner; the keys of rule_state, timer and current_value. `offset 0` forces one
-- lookup per row, as in rules.alarms/read_series: a plan that reads all watchdogs would be far
-- slower.
with owners as materialized (
    select o.owner, tocsin.token(o.owner) as ref from (select distinct owner from tocsin.system_member) o
),
lane as (
    select case when count(*) = count(watermark) then min(watermark) end as until
    from tocsin.lane_partition
    where lane = 'data'
),
undecided as (
    select t.nominal_at as at
    from owners o
    join tocsin.alarm a on a.owner = o.owner and a.state <> 'resolved'
    join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance and s.alarm_id = a.id
    join tocsin.timer t on t.kind = 'for-sustain' and t.ref = a.id::text and t.key in ('open', 'clear')
    where s.lane = 'data' and t.parked_at is null
    union all
    select greatest(t.nominal_at, tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint))
    from owners o
    cross join lateral (
        select due.key, due.nominal_at, due.payload
        from tocsin.timer due
        where due.kind = 'watchdog' and due.ref = o.ref and due.nominal_at <= (select until from lane)
          and due.parked_at is null
        offset 0
    ) t
    cross join lateral (
        select v.arrived_at, v.freshness, v.partition
        from tocsin.current_value v
        where v.owner = o.owner and v.key = t.key
        offset 0
    ) c
    join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
    where c.freshness = 'fresh'
    union all
    select c.stale_since
    from owners o
    join tocsin.current_value c on c.owner = o.owner
    where c.freshness = 'stale' and c.handled_stale_since is distinct from c.stale_since
)
select case when exists (select from tocsin.member_observation o where o.at < l.until)
            then least(l.until, (select min(u.at) from undecided u)) - interval '1 microsecond' end
from lane l
