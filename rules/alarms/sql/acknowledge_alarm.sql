-- Acknowledges an open alarm. No row: it is already acknowledged, or not open.
update tocsin.alarm
set acknowledged_at = %(at)s, acknowledged_by = %(who)s, acknowledged_note = %(note)s, version = version + 1
where id = %(id)s and state = 'open' and acknowledged_at is null
returning event_rule, owner, severity, correlation_id, source_event_id, payload
