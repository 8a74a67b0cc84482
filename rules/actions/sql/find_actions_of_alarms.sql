-- Actions under way of these alarms, whose timers are to be removed. Locks nothing. Index: action_of_alarm.
select a.id
from tocsin.action a
where a.alarm_id = any(%(alarms)s::uuid[])
  and a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
