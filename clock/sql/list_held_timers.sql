-- The number of held timers of each partition, and the deadline of the oldest; at most 10,000 are
-- counted. Locks nothing. Index: timer_due; the keys of current_value, alarm, rule_state and
-- lane_partition.
select h.lane, h.partition, count(*), min(h.nominal_at), tocsin.instant()
from (select * from tocsin.held_timer limit 10000) h
group by h.lane, h.partition
order by h.lane, h.partition
