-- Lock the active runs that began before their alarm resolved or was acknowledged, in key order, if
-- their `ends_with` has that transition and their `finally` has not begun. A
-- notification (`notify:`, a text form of schemas/values/rule_ref.py) is not ended: it is delivered
-- even if the alarm changes after it. Index: action_of_alarm.
select a.id, item.reason
from unnest(%(alarms)s::uuid[], %(before)s::bigint[], %(transitions)s::text[], %(reasons)s::text[])
    as item (alarm_id, before_seq, transition, reason)
join tocsin.action a on a.alarm_id = item.alarm_id and a.event_seq < item.before_seq
    and item.transition = any(a.ends_with) and a.ending is null
where a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
order by a.id
for update of a
