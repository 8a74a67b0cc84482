-- The runs of read_active_runs, locked in key order until the batch commits: transactions that
-- begin or end one wait for the batch.
select action_rule, group_key, id, state
from tocsin.action
where action_rule = any(%(rules)s) and state in ('gathering', 'queued', 'running')
order by id
for update
