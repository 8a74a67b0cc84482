-- Actions under way that began before their alarm ended or was acknowledged, locked in key order. A plain notification of
-- an edge is no escalation: it is delivered whatever comes after. Index: action_of_alarm.
select a.id, d.reason
from unnest(%(alarms)s::uuid[], %(before)s::bigint[], %(reasons)s::text[]) as d (alarm_id, before_seq, reason)
join tocsin.action a on a.alarm_id = d.alarm_id and a.event_seq < d.before_seq
where a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
order by a.id
for update of a
