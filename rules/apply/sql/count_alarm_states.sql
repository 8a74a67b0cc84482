-- The number of states of some rules that have an alarm. No lock. Index: the key of rule_state.
select count(*) from tocsin.rule_state where event_rule = any (%(rules)s::text[]) and phase <> 'ok'
