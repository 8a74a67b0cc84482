-- Snoozes an open alarm until an instant; null ends the snooze. No row: it is not open.
update tocsin.alarm
set snoozed_until = %(until)s, snoozed_by = %(who)s, version = version + 1
where id = %(id)s and state = 'open'
returning event_rule, owner, severity, correlation_id, source_event_id, payload
