-- Owners with overdue checks, and their number. A check is overdue if the watermark of its
-- partition has passed the deadline of a series and its watchdog has not fired; if the rules have
-- not handled a staleness; or if a sustain of a member is due. Reads every watchdog once, and its
-- series only if some partition has been read up to its deadline. No lock. Index: the keys of
-- current_value and timer, current_value_stale, alarm_active_owner.
select d.partition, d.owner, count(*)
from (
    select c.partition, c.owner
    from tocsin.timer t
    join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
    join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
    where t.kind = 'watchdog'
      and t.nominal_at <= (select max(r.watermark) from tocsin.lane_partition r where r.lane = 'data')
      and greatest(t.nominal_at, tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint)) <= p.watermark
    union all
    select c.partition, c.owner
    from tocsin.current_value c
    where c.freshness = 'stale' and c.handled_stale_since is distinct from c.stale_since
    union all
    select s.partition, s.owner
    from (select distinct owner from tocsin.system_member) m
    join tocsin.alarm a on a.owner = m.owner and a.state <> 'resolved'
    join tocsin.rule_state s
        on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance and s.alarm_id = a.id and s.lane = 'data'
    join tocsin.timer t on t.kind = 'for-sustain' and t.ref = a.id::text and t.key in ('open', 'clear')
    join tocsin.lane_partition p on p.lane = 'data' and p.partition = s.partition
    where t.nominal_at < p.watermark
) d
group by d.partition, d.owner
order by d.partition, d.owner
