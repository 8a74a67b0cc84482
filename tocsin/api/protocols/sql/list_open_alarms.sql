-- Open alarms of the owners of some patterns, the most severe and newest first.
select a.id, a.event_rule, a.owner, a.instance, a.state, a.severity, a.since, a.opened_at, a.payload,
       a.acknowledged_at, a.acknowledged_by, a.snoozed_until, a.snoozed_by
from tocsin.alarm a
where a.state = 'open' and tocsin.owner_matches(a.owner, %(owners)s)
order by a.severity desc, a.since desc, a.id
limit %(limit)s
