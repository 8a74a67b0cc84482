-- A page of the events of some owners, the newest first, also those that outlived the retention of the
-- log. Walks the primary keys backwards. Locks nothing.
select seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, fire_at, alarm_id, severity,
       source_event_id, correlation_id, payload, epoch
from (
    select * from tocsin.event where seq >= (select h.horizon from tocsin.log_head h)
    union all
    select * from tocsin.event_kept where seq < (select h.horizon from tocsin.log_head h)
) e
where tocsin.owner_matches(e.owner, %(owners)s)
  and (%(after_seq)s::bigint is null or seq < %(after_seq)s)
  and (%(type)s::text is null or type = %(type)s)
  and (%(schedule)s::text is null or schedule = %(schedule)s)
  and (%(rule)s::text is null or rule = %(rule)s)
  and (%(owner)s::text is null or owner = %(owner)s)
  and (%(origin)s::text is null or origin = %(origin)s)
  and (%(correlation_id)s::uuid is null or correlation_id = %(correlation_id)s)
order by seq desc
limit %(limit)s
