-- The armed sustains of an alarm, with the watermark of its partition. Index: the key of timer.
select t.key, t.fire_at, t.nominal_at, t.parked_at, t.last_error, p.lane, p.partition, p.watermark
from tocsin.timer t
join tocsin.alarm a on a.id = %(alarm_id)s
left join tocsin.rule_state s on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance
left join tocsin.lane_partition p on p.lane = s.lane and p.partition = s.partition
where t.kind = 'for-sustain' and t.ref = %(alarm_id)s::text
order by t.nominal_at, t.key
