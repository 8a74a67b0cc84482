-- The runs of read_active_runs, locked in key order until the batch commits: transactions that
-- begin or end one wait for the batch. Index: action_active.
select a.action_rule, a.group_key, a.id, a.state
from unnest(%(rules)s::text[], %(groups)s::text[], %(begun)s::boolean[]) as item (action_rule, group_key, begun)
join tocsin.action a on a.action_rule = item.action_rule and a.group_key = item.group_key
where a.state in ('gathering', 'queued', 'running') and (item.begun or a.state = 'gathering')
order by a.id
for update of a
