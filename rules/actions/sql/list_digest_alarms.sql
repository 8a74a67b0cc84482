-- Alarms that are open, or were resolved after an instant, the newest first. Locks nothing. Indexes:
-- alarm_active, alarm_ended.
select a.id, a.event_rule as rule, a.owner, a.severity, a.state, a.since, a.opened_at, a.resolved_at, a.acknowledged_at,
       coalesce(a.acknowledged_by, '') as acknowledged_by,
       coalesce(a.snoozed_until > (select tocsin.instant()), false) as snoozed, a.payload
from tocsin.alarm a
where a.state = 'open' or (a.state = 'resolved' and a.resolved_at > %(since)s)
order by a.since desc, a.id
limit %(limit)s
