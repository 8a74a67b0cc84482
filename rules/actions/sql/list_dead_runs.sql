-- Runs that failed or timed out after an instant, the newest first. Locks nothing. Index:
-- action_dead.
select a.id, a.name, a.action_rule as rule, a.owner, a.state, a.ended_at, a.error
from tocsin.action a
where a.state in ('failed', 'timed_out') and a.ended_at > %(since)s
order by a.ended_at desc, a.id
limit %(limit)s
