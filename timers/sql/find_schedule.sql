-- One schedule with its pending tick. Locks nothing: an edit compares what it has read when it
-- writes.
select s.id, s.owner, s.name, s.recurrence, s.spread, s.catch_up, s."window", s.grace, s.max_catch_up, s.type,
       s.payload, s.action, s.retry, s.title, s.description, s.runbook_url, s.status, s.generation, s.source, s.created_by, s.created_via, s.created_at, s.updated_at,
       greatest(s.last_occurrence, t.last_nominal_at) as last_occurrence,
       case when t.last_nominal_at is null then s.last_identity else t.last_identity end as last_identity,
       t.last_nominal_at as tick_done_until, t.nominal_at, t.fire_at, t.attempts, t.last_error, t.parked_at
from tocsin.schedule s
left join tocsin.timer t on t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = ''
where s.owner = %(owner)s and s.name = %(name)s
