-- Active runs that alarms started or joined, and steps that an inhibiting alarm holds. Locks nothing.
-- Indexes: action_event_of_alarm, action's key, action_held.
select distinct l.alarm_id, a.id, a.action_rule, false as is_inhibited
from tocsin.action_event l
join tocsin.action a on a.id = l.action_id
where l.alarm_id = any(%(alarms)s::uuid[]) and a.state in ('gathering', 'queued', 'running')
union all
select substr(key.name, 7)::uuid, a.id, a.action_rule, true
from tocsin.action a
cross join lateral unnest(a.held_by) as key (name)
where a.held_by && %(keys)s::text[] and a.state = 'running' and key.name = any(%(keys)s::text[])
