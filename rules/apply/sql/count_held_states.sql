-- How many states of some rules hold an alarm. Locks nothing. Index: rule_state's key.
select count(*) from tocsin.rule_state where event_rule = any (%(rules)s::text[]) and phase <> 'ok'
