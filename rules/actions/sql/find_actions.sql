-- Runs whose id lies between two: those with a common prefix. Two rows mean that the prefix is
-- ambiguous. Locks nothing. Index: action's key.
select a.id, a.name, a.action_rule as rule, a.owner, a.state, a.started_at, a.ended_at, a.result, a.error, a.document,
       a.active, a.answers, a.alarm_id, a.event_id, a.event_seq, a.correlation_id, a.lineage, a.group_key
from tocsin.action a
where a.id between %(first)s and %(last)s
limit 2
