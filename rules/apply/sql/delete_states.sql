-- Phase 2: deletes the states of removed rules. The partitions are locked, so no worker adds any.
delete from tocsin.rule_state where event_rule = any (%(rules)s::text[])
