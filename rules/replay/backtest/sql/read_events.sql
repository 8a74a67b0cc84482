-- The events of some owners with a time up to an instant, in order. Index: event's key.
select owner, seq, id, ts, recorded_at, origin, type, schedule, rule, action, alarm_id, severity, correlation_id, payload
from tocsin.event
where seq >= %(first_seq)s and owner = any (%(owners)s::text[]) and least(ts, recorded_at) <= %(until)s
order by owner collate "C", seq
