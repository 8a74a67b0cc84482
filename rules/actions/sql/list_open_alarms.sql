-- Open alarms, the highest severity and then the oldest first, and their number. Locks nothing.
-- Index: alarm_active.
select a.id, a.event_rule as rule, a.owner, a.severity, a.since, coalesce(a.payload ->> 'message', '') as message,
       a.acknowledged_at is not null as acknowledged, coalesce(a.acknowledged_by, '') as acknowledged_by,
       count(*) over () as count
from tocsin.alarm a
where a.state = 'open'
order by a.severity desc, a.since, a.id
limit %(limit)s
