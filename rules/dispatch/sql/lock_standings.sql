-- The same runs, locked in key order until the batch commits: what ends or begins after this sees what the batch did.
select action_rule, group_key, id, state
from tocsin.action
where action_rule = any(%(rules)s) and state in ('gathering', 'queued', 'running')
order by id
for update
