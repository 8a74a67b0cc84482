-- Lock the active runs all of whose alarms have ended, in key order: those that began before one of these
-- alarms made a transition of their `ends_with`, and whose `finally` has not begun. An alarm of a group
-- that has made none keeps the run. So does an event that reports such a transition itself, and one
-- without an alarm. A notification (`notify:`, a text form of schemas/values/rule_ref.py) ends by itself.
-- Indexes: action_event_of_alarm, action_event_of, the keys of action, alarm and event.
with ended as (
    select *
    from unnest(%(alarms)s::uuid[], %(before)s::bigint[], %(transitions)s::text[], %(reasons)s::text[])
        as item (alarm_id, before_seq, transition, reason)
),
candidates as (
    select distinct on (a.id) a.id, e.reason
    from ended e
    join tocsin.action_event l on l.alarm_id = e.alarm_id and l.event_seq < e.before_seq
    join tocsin.action a on a.id = l.action_id and e.transition = any(a.ends_with) and a.ending is null
    where a.state in ('gathering', 'queued', 'running') and a.action_rule not like 'notify:%%'
    order by a.id, e.before_seq desc
)
select a.id, c.reason
from candidates c
join tocsin.action a on a.id = c.id
where not exists (
    select
    from tocsin.action_event l
    left join tocsin.event t on t.seq = l.event_seq
    left join tocsin.alarm m on m.id = l.alarm_id
    where l.action_id = c.id
      and (l.alarm_id is null
           or t.type = 'alarm-resolved'
           or m.id is not null
              and not (m.state = 'resolved' and 'resolved' = any(a.ends_with)
                       or m.acknowledged_at is not null and 'acknowledged' = any(a.ends_with)
                          and t.type is distinct from 'alarm-acknowledged'))
      and not exists (
          select from ended e
          where e.alarm_id = l.alarm_id and e.before_seq > l.event_seq and e.transition = any(a.ends_with)))
order by a.id
for update of a
