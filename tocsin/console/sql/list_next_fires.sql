-- The schedules of some owners that fire next, among the next `within` ticks: the walk is bounded where they are
-- rare. Schedules of Tocsin itself (owner `tocsin:...`) are left out. Locks nothing. Index: timer_due; schedule's key.
select s.owner, s.name, s.title, s.recurrence, s.status, t.nominal_at, t.fire_at, t.attempts, t.last_error, t.parked_at
from (
    select n.ref, n.nominal_at, n.fire_at, n.attempts, n.last_error, n.parked_at
    from tocsin.timer n
    where n.kind = 'schedule-tick' and n.parked_at is null
    order by n.fire_at
    limit %(within)s
) t
join tocsin.schedule s on s.id = t.ref::uuid
where s.status = 'active' and s.owner not like 'tocsin:%%' and tocsin.owner_matches(s.owner, %(owners)s)
order by t.fire_at, s.owner, s.name
limit %(limit)s
