-- Alarms whose id begins with a text, at most two: one is found, two are ambiguous. Locks nothing. Few alarms are held at
-- a time; the whole table is read only for a prefix.
select id, event_rule, owner, state, severity, since, opened_at, resolved_at, resolved_reason, payload, correlation_id,
       source_event_id, acknowledged_at, acknowledged_by, acknowledged_note, snoozed_until, snoozed_by
from tocsin.alarm
where id::text like %(prefix)s || '%%'
order by since desc
limit 2
