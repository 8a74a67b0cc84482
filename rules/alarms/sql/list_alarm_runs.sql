-- The runs of actions that an alarm started or joined, oldest first; list_notifications has the
-- notifications. Indexes: action_event_of_alarm, action's key.
select a.id, a.name, a.action_rule, a.state, a.started_at, a.ended_at, a.error, a.held_by
from tocsin.action a
where a.id in (select l.action_id from tocsin.action_event l where l.alarm_id = %(alarm_id)s)
  and a.action_rule not like 'notify:%%'
order by a.started_at, a.id
