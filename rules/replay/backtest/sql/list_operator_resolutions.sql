-- The alarms of some owners that operators resolved from a seq on, in order. Index: event's key.
select owner, seq, id, ts, recorded_at, origin, type, schedule, rule, action, alarm_id, severity, correlation_id, payload
from tocsin.event
where seq >= %(first_seq)s and owner = any (%(owners)s::text[]) and origin = 'caused' and type = 'alarm-resolved'
  and action = ''
order by owner collate "C", seq
