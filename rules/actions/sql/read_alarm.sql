-- The current state of an alarm. Locks nothing. Index: alarm's key.
select a.id, a.event_rule as rule, a.owner, a.state, a.severity, a.since, a.payload,
       coalesce(a.payload ->> 'message', '') as message,
       a.acknowledged_at is not null as acknowledged, coalesce(a.acknowledged_by, '') as acknowledged_by,
       coalesce(a.snoozed_until > (select tocsin.instant()), false) as snoozed
from tocsin.alarm a
where a.id = %(id)s
