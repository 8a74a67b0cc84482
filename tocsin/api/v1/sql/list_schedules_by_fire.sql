-- A page of the schedules of some owners, the next to fire first, behind the last one of the page before.
-- Those of Tocsin itself (owner `tocsin:...`) are left out. Locks nothing.
select s.id, s.owner, s.name, s.recurrence, s.spread, s.catch_up, s."window", s.grace, s.max_catch_up, s.type,
       s.payload, s.action, s.retry, s.title, s.description, s.runbook_url, s.status, s.generation, s.source,
       s.created_by, s.created_via, s.created_at, s.updated_at,
       greatest(s.last_occurrence, t.last_nominal_at) as last_occurrence,
       t.nominal_at, t.fire_at, t.attempts, t.last_error, t.parked_at
from tocsin.schedule s
left join tocsin.timer t on t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = ''
where tocsin.owner_matches(s.owner, %(owners)s) and s.owner not like 'tocsin:%%'
  and (%(owner)s::text is null or s.owner = %(owner)s)
  and (%(name)s::text is null or s.name = %(name)s)
  and (%(type)s::text is null or s.type = %(type)s)
  and (%(status)s::text is null or s.status = %(status)s)
  and (%(after_owner)s::text is null
       or (coalesce(t.fire_at, 'infinity'), s.owner, s.name)
          > (coalesce(%(after_fire_at)s::timestamptz, 'infinity'), %(after_owner)s, %(after_name)s))
order by t.fire_at nulls last, s.owner, s.name
limit %(limit)s
