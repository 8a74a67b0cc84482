-- The owners of heartbeats, with the partitions of their states. Locks nothing.
select distinct owner, partition
from tocsin.rule_state
where lane = 'data' and starts_with(event_rule, 'heartbeat:')
