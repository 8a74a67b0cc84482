-- The newest events of some owners before a seq, with some values, among `within` records: the walk is
-- bounded where they are rare. Walks the primary key backwards. Locks nothing.
with bound as (
    select least(coalesce(%(before)s::bigint, 9223372036854775807), coalesce((select max(n.seq) from tocsin.event n), 0) + 1)
           as before
)
select e.seq, e.id, e.ts, e.recorded_at, e.origin, e.type, e.schedule, e.rule, e.action, e.owner, e.fire_at, e.alarm_id,
       e.severity, e.correlation_id, e.payload
from tocsin.event e
where e.seq >= (select l.horizon from tocsin.log_head l)
  and e.seq < (select b.before from bound b)
  and e.seq >= (select b.before from bound b) - %(within)s
  and tocsin.owner_matches(e.owner, %(owners)s)
  and (%(type)s::text is null or e.type = %(type)s)
  and (%(schedule)s::text is null or e.schedule = %(schedule)s)
  and (%(rule)s::text is null or e.rule = %(rule)s)
  and (%(owner)s::text is null or e.owner = %(owner)s)
  and (%(origin)s::text is null or e.origin = %(origin)s)
order by e.seq desc
limit %(limit)s
