-- The alarms of some owners that were open at an instant.
select owner, event_rule, instance, id, severity, since, opened_at, payload, source_event_id
from tocsin.alarm
where opened_at < %(at)s and (resolved_at is null or resolved_at >= %(at)s) and owner = any (%(owners)s::text[])
order by owner collate "C", event_rule, instance
