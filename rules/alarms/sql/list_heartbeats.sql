-- The states of heartbeats of a partition of the data lane. Locks nothing: put_rule_states compares
-- versions. Index: rule_state_recheck has most of them; called when an arrival gap ends.
select event_rule, owner, instance
from tocsin.rule_state
where lane = 'data' and partition = %(partition)s and starts_with(event_rule, 'heartbeat:')
