-- The newest events of some owners among the last `within` records of the log, so that the walk is bounded
-- where they are rare. Walks the primary key backwards. Locks nothing.
select e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.fire_at, e.alarm_id,
       e.severity, e.correlation_id, e.payload
from tocsin.event e
where e.seq >= (select l.horizon from tocsin.log_head l)
  and e.seq > (select max(newest.seq) from tocsin.event newest) - %(within)s
  and tocsin.owner_matches(e.owner, %(owners)s)
order by e.seq desc
limit %(limit)s
