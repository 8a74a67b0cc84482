-- What people had done, before a seq, to the alarms of some owners that were open at an instant, in order; also what outlived the log's
-- retention. Index: event_of_alarm, event_kept_of_alarm.
select act.owner, act.seq, act.id, act.ts, act.recorded_at, act.origin, act.type, act.schedule, act.rule, act.action, act.alarm_id,
       act.severity, act.correlation_id, act.payload
from tocsin.alarm a
cross join lateral (
    select * from tocsin.event e
    where e.alarm_id = a.id and e.seq < %(first_seq)s and e.seq >= (select h.horizon from tocsin.log_head h)
    union all
    select * from tocsin.event_kept k
    where k.alarm_id = a.id and k.seq < (select h.horizon from tocsin.log_head h)
) act
where a.opened_at < %(at)s and (a.resolved_at is null or a.resolved_at >= %(at)s) and a.owner = any (%(owners)s::text[])
  and act.action = '' and act.type in ('alarm-acknowledged', 'alarm-snoozed', 'alarm-unsnoozed')
order by act.seq
