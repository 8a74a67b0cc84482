-- One run and the current instant. Locks nothing: a transaction that changes the run checks its
-- version. Index: action's key.
select a.id, a.name, a.action_rule as rule, a.group_key, a.document, a.state, a.active, a.answers, a.owner, a.alarm_id,
       a.event_id, a.event_seq, a.correlation_id, a.lineage, a.ending, a.version, a.started_at, tocsin.instant() as read_at
from tocsin.action a
where a.id = %(id)s
