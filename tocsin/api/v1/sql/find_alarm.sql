-- An alarm of some owners; no row for one of another owner. Locks nothing. Index: alarm's key.
select id, event_rule, owner, instance, state, severity, since, opened_at, resolved_at, resolved_reason, payload, correlation_id,
       source_event_id, acknowledged_at, acknowledged_by, acknowledged_note, snoozed_until, snoozed_by
from tocsin.alarm
where id = %(id)s and tocsin.owner_matches(owner, %(owners)s)
