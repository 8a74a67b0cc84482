-- Events of operators from before a seq, about alarms of some owners that were open at an instant, in
-- order. Includes those that outlived the retention of the log. Index: event_of_alarm,
-- event_kept_of_alarm.
select o.owner, o.seq, o.id, o.ts, o.recorded_at, o.origin, o.type, o.schedule, o.rule, o.action, o.alarm_id,
       o.severity, o.correlation_id, o.payload
from tocsin.alarm a
cross join lateral (
    select * from tocsin.event e
    where e.alarm_id = a.id and e.seq < %(first_seq)s and e.seq >= (select h.horizon from tocsin.log_head h)
    union all
    select * from tocsin.event_kept k
    where k.alarm_id = a.id and k.seq < (select h.horizon from tocsin.log_head h)
) o
where a.opened_at < %(at)s and (a.resolved_at is null or a.resolved_at >= %(at)s) and a.owner = any (%(owners)s::text[])
  and o.action = '' and o.type in ('alarm-acknowledged', 'alarm-snoozed', 'alarm-unsnoozed')
order by o.seq
