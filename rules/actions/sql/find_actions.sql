-- Actions whose id lies between two: those that begin alike. Locks nothing. Index: action's key.
select a.id, a.name, a.action_rule as rule, a.owner, a.state, a.started_at, a.ended_at, a.result, a.error, a.document,
       a.active, a.answers, a.alarm_id, a.event_id, a.event_seq, a.correlation_id, a.lineage, a.group_key
from tocsin.action a
where a.id between %(first)s and %(last)s
limit 2
