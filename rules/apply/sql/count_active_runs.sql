-- Runs that have not ended, by action_rule or by action. Index: action_active.
select 'action_rule', a.action_rule, a.state, count(*)
from tocsin.action a
where a.action_rule = any (%(rules)s::text[]) and a.state in ('gathering', 'queued', 'running')
group by 2, 3
union all
select 'action', a.name, a.state, count(*)
from tocsin.action a
where a.name = any (%(actions)s::text[]) and a.state in ('gathering', 'queued', 'running')
group by 2, 3
