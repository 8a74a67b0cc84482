-- The open alarms that can inhibit another: of some rules (null: of any), of one owner (null: of any)
-- and with some labels. Locks nothing. Index: alarm_active.
select a.id, a.event_rule, a.owner, a.severity, a.payload
from tocsin.alarm a
where a.state = 'open'
  and (%(rules)s::text[] is null or a.event_rule = any(%(rules)s::text[]))
  and (%(owner)s::text is null or a.owner = %(owner)s)
  and (a.payload -> 'labels') @> %(labels)s::jsonb
