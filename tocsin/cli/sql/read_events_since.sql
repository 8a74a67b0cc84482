-- The first events after a seq, oldest first, those that outlived the log's retention too; optionally of one type, schedule or origin.
-- Walks the primary keys.
select seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at, source_event_id,
       correlation_id, payload, epoch
from (
    select * from tocsin.event where seq >= (select h.horizon from tocsin.log_head h)
    union all
    select * from tocsin.event_kept where seq < (select h.horizon from tocsin.log_head h)
) e
where seq > %(since)s
  and (%(type)s::text is null or type = %(type)s)
  and (%(schedule)s::text is null or schedule = %(schedule)s)
  and (%(origin)s::text is null or origin = %(origin)s)
order by seq
limit %(limit)s
