-- The states of a partition of the data lane that change before an instant although nothing arrives.
-- Locks nothing: put_rule_states compares versions. Index: rule_state_recheck.
select event_rule, owner, instance
from tocsin.rule_state
where lane = 'data' and partition = %(partition)s and recheck_at < %(until)s
