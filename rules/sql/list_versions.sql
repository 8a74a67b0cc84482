-- The versions of rules and actions that hold for events after a seq.
select kind, name, document, from_seq, until_seq
from tocsin.rule_version
where kind in ('action_rule', 'action') and (until_seq is null or until_seq > %(after)s)
order by kind, name, version
