-- The pending and open alarms of some rules and one owner, the oldest first. Locks nothing. Index: alarm_active.
select id, event_rule, instance, state, since, opened_at
from tocsin.alarm
where event_rule = any(%(rules)s) and owner = %(owner)s and state in ('pending', 'open')
order by event_rule, since, id
