-- The owners for which some rules have a state. Locks nothing. Index: the key.
select event_rule, owner from tocsin.rule_state where event_rule = any(%(rules)s)
