-- Phase 2: everything that is remembered for rules that are gone. The partitions are locked, so no worker adds to it.
delete from tocsin.rule_state where event_rule = any (%(rules)s::text[])
