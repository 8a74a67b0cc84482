-- Active runs that end with these transitions of their alarms. Their timers are removed, and then
-- lock_actions_of_alarms decides. Locks nothing. Index: action_of_alarm.
select distinct a.id
from unnest(%(alarms)s::uuid[], %(transitions)s::text[]) as item (alarm_id, transition)
join tocsin.action a on a.alarm_id = item.alarm_id and item.transition = any(a.ends_with) and a.ending is null
where a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
