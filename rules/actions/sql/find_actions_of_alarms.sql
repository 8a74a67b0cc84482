-- Active runs of these alarms, whose timers are removed. `notify:` is a text form of
-- schemas/values/rule_ref.py; see lock_actions_of_alarms. Locks nothing. Index: action_of_alarm.
select a.id
from tocsin.action a
where a.alarm_id = any(%(alarms)s::uuid[])
  and a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
