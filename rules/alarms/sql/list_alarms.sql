-- Alarms by severity and age, the highest and newest first, filtered by state, rule, owner and
-- least severity.
select id, event_rule, owner, instance, state, severity, since, opened_at, resolved_at, resolved_reason, payload, correlation_id,
       source_event_id, acknowledged_at, acknowledged_by, acknowledged_note, snoozed_until, snoozed_by
from tocsin.alarm
where state = any(%(states)s)
  and (%(rule)s::text is null or event_rule = %(rule)s)
  and (%(owner)s::text is null or owner = %(owner)s)
  and (%(owners)s::text[] is null or tocsin.owner_matches(owner, %(owners)s))
  and severity >= %(severity)s
order by severity desc, since desc, id
limit %(limit)s
