-- The events with which some alarms resolved. Locks nothing. Index: event_of_alarm.
select e.alarm_id, e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner,
       e.severity, e.correlation_id, e.payload
from tocsin.event e
where e.alarm_id = any(%(alarms)s::uuid[]) and e.type = 'alarm-resolved'
order by e.seq
