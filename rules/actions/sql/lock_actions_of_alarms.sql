-- Lock the active runs that began before their alarm resolved or was acknowledged, in key order. A
-- notification (`notify:`, a text form of schemas/values/rule_ref.py) is not ended: it is delivered
-- even if the alarm changes after it. Index: action_of_alarm.
select a.id, item.reason
from unnest(%(alarms)s::uuid[], %(before)s::bigint[], %(reasons)s::text[]) as item (alarm_id, before_seq, reason)
join tocsin.action a on a.alarm_id = item.alarm_id and a.event_seq < item.before_seq
where a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
order by a.id
for update of a
