-- Open alarms with the facts that matchers read, of some rules and owners (null: of any). Locks
-- nothing. Index: alarm_active.
select a.id, a.event_rule, a.owner, a.severity, a.payload, a.snoozed_until, a.snoozed_by
from tocsin.alarm a
where a.state = 'open'
  and (%(rules)s::text[] is null or a.event_rule = any(%(rules)s::text[]))
  and (%(owners)s::text[] is null or a.owner = any(%(owners)s::text[]))
limit %(limit)s
