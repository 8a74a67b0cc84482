-- Alarms whose id lies between two: those with a common prefix. Two rows mean that the prefix is
-- ambiguous. Locks nothing.
-- Index: alarm's key.
select id, event_rule, owner, instance, state, severity, since, opened_at, resolved_at, resolved_reason, payload, correlation_id,
       source_event_id, acknowledged_at, acknowledged_by, acknowledged_note, snoozed_until, snoozed_by
from tocsin.alarm
where id between %(first)s and %(last)s
order by since desc
limit 2
