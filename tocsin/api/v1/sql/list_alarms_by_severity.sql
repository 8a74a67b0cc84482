-- A page of the alarms of some owners, the most severe and newest first, behind the last one of the page
-- before. Locks nothing.
select id, event_rule, owner, instance, state, severity, since, opened_at, resolved_at, resolved_reason, payload, correlation_id,
       source_event_id, acknowledged_at, acknowledged_by, acknowledged_note, snoozed_until, snoozed_by
from tocsin.alarm
where tocsin.owner_matches(owner, %(owners)s)
  and state = any(%(states)s)
  and (%(rule)s::text is null or event_rule = %(rule)s)
  and (%(owner)s::text is null or owner = %(owner)s)
  and severity >= %(severity)s
  and (%(first)s::uuid is null or id between %(first)s and %(last)s)
  and (%(after_since)s::timestamptz is null or severity < %(after_severity)s
       or (severity = %(after_severity)s
           and (since < %(after_since)s or (since = %(after_since)s and id > %(after_id)s::uuid))))
order by severity desc, since desc, id
limit %(limit)s
