-- The owners that have a state of some heartbeats. Locks nothing: the apply has locked the partitions.
-- Index: the key of rule_state.
select event_rule, owner from tocsin.rule_state where event_rule = any (%(rules)s::text[]) and instance = ''
