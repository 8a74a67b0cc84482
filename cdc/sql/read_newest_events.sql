-- The newest events, newest first; optionally of one type, schedule or origin. Walks the primary key backwards.
select seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at, source_event_id,
       correlation_id, payload, epoch
from tocsin.event
where (%(type)s::text is null or type = %(type)s)
  and (%(schedule)s::text is null or schedule = %(schedule)s)
  and (%(origin)s::text is null or origin = %(origin)s)
order by seq desc
limit %(limit)s
