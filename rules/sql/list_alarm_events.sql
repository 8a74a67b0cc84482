-- The events of an alarm in commit order. Index: event_of_alarm. Locks nothing.
select seq, ts, recorded_at, type, payload, epoch
from tocsin.event
where alarm_id = %(alarm_id)s
order by seq
