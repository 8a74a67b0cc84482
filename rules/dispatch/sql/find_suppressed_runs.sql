-- Runs that the end of a silence may release: notifications about some alarms, and runs that one of
-- some suppressions holds. Locks nothing. Indexes: action_event_of_alarm, action's key, action_held.
select a.id, a.action_rule
from tocsin.action_event l
join tocsin.action a on a.id = l.action_id
where l.alarm_id = any(%(alarms)s::uuid[]) and a.state = 'running' and a.action_rule like 'notify:%%'
union
select a.id, a.action_rule
from tocsin.action a
where a.held_by && %(keys)s::text[] and a.state = 'running'
