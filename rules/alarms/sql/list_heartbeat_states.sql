-- The states of all heartbeats, by rule and owner. Locks nothing. Index: the key of rule_state.
select event_rule, owner, state, partition
from tocsin.rule_state
where event_rule >= 'heartbeat:' and event_rule < 'heartbeat;' and starts_with(event_rule, 'heartbeat:')
order by event_rule, owner
