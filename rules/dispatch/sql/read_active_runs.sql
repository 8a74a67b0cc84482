-- Active runs of some rules, oldest first. Locks nothing: lock_active_runs reads them again and the
-- caller compares. Index: action_active.
select action_rule, group_key, id, state
from tocsin.action
where action_rule = any(%(rules)s) and state in ('gathering', 'queued', 'running')
order by event_seq, id
