-- Held timers by kind and partition, and the time since the deadline of the oldest; at most 10,000
-- are counted. Locks nothing. Index: timer_due; the keys of current_value, alarm, rule_state and
-- lane_partition.
select h.kind, h.lane, h.partition, count(*), extract(epoch from tocsin.instant() - min(h.nominal_at))::float8
from (select * from tocsin.held_timer limit 10000) h
group by h.kind, h.lane, h.partition
