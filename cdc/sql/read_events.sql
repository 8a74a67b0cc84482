-- Events of a range of seq, in order. Index: primary key. Columns as schemas.event.EventRow.
select seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at, alarm_id, severity,
       source_event_id, correlation_id, payload::text, epoch
from tocsin.event
where seq > %(after)s and seq <= %(until)s
order by seq
