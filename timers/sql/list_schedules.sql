-- All schedules with their pending ticks, next fire first; optionally of one owner, name, type or
-- status. Schedules of Tocsin itself (owner `tocsin:...`) are left out unless their owner is given.
select s.id, s.owner, s.name, s.recurrence, s.spread, s.catch_up, s."window", s.grace, s.max_catch_up, s.type,
       s.payload, s.action, s.retry, s.title, s.description, s.runbook_url, s.status, s.generation, s.source, s.created_by, s.created_via, s.created_at, s.updated_at,
       greatest(s.last_occurrence, t.last_nominal_at) as last_occurrence,
       t.nominal_at, t.fire_at, t.attempts, t.last_error, t.parked_at
from tocsin.schedule s
left join tocsin.timer t on t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = ''
where case when %(owner)s::text is null then s.owner not like 'tocsin:%%' else s.owner = %(owner)s end
  and (%(name)s::text is null or s.name = %(name)s)
  and (%(type)s::text is null or s.type = %(type)s)
  and (%(source)s::text is null or s.source = %(source)s)
  and (%(status)s::text is null or s.status = %(status)s)
order by t.fire_at nulls last, s.owner, s.name
limit %(limit)s
