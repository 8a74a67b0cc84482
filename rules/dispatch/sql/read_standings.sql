-- The runs of some rules that are under way, oldest first. Index: action_under_way. Locks nothing: lock_standings compares.
select action_rule, group_key, id, state
from tocsin.action
where action_rule = any(%(rules)s) and state in ('gathering', 'queued', 'running')
order by event_seq, id
