-- The events of one cause and of some owners, in the order of the log, among its last `within` records.
-- Walks the primary key. Locks nothing.
select e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.fire_at, e.alarm_id,
       e.severity, e.source_event_id, e.correlation_id, e.payload
from tocsin.event e
where e.seq >= (select l.horizon from tocsin.log_head l)
  and e.seq > coalesce((select max(n.seq) from tocsin.event n), 0) - %(within)s
  and e.correlation_id = %(id)s
  and tocsin.owner_matches(e.owner, %(owners)s)
order by e.seq
limit %(limit)s
