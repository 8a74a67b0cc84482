-- Up to when everything about members is decided: before what all partitions have read, because more may come of the same
-- instant, and before a sustain or a watchdog of a member's owner that the clock has still to fire, or a silence that the rules
-- have not heard of. Null: nothing is, or no fact waits that lies before what all partitions have read; then, as for a partition that
-- is behind for hours, nothing else is looked at. Locks nothing.
-- Index: alarm_held_owner; the keys of rule_state, timer and current_value. Row by row (`offset 0`), as in rules/read_series: whatever
-- the planner believes, reading all the watchdogs there are would be wrong.
with owners as materialized (
    select o.owner, tocsin.token(o.owner) as ref from (select distinct owner from tocsin.system_member) o
),
lane as (
    select case when count(*) = count(watermark) then min(watermark) end as until
    from tocsin.lane_partition
    where lane = 'data'
),
undone as (
    select t.nominal_at as at
    from owners o
    join tocsin.alarm a on a.owner = o.owner and a.state <> 'resolved'
    join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner and s.alarm_id = a.id
    join tocsin.timer t on t.kind = 'for-sustain' and t.ref = a.id::text and t.key in ('open', 'clear')
    where s.lane = 'data' and t.parked_at is null
    union all
    select greatest(t.nominal_at, c.arrived_at + (t.payload ->> 'within_us')::bigint * interval '1 microsecond')
    from owners o
    cross join lateral (
        select due.key, due.nominal_at, due.payload
        from tocsin.timer due
        where due.kind = 'watchdog' and due.ref = o.ref and due.nominal_at <= (select until from lane)
          and due.parked_at is null
        offset 0
    ) t
    cross join lateral (
        select one.arrived_at, one.freshness
        from tocsin.current_value one
        where one.owner = o.owner and one.key = t.key
        offset 0
    ) c
    where c.freshness = 'fresh'
    union all
    select c.stale_since
    from owners o
    join tocsin.current_value c on c.owner = o.owner
    where c.freshness = 'stale' and c.handled_stale_since is distinct from c.stale_since
)
select case when exists (select from tocsin.member_observation f where f.at < l.until)
            then least(l.until, (select min(u.at) from undone u)) - interval '1 microsecond' end
from lane l
