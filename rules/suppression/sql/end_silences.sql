-- End silences at an instant, in key order, and cancel the schedules of their ends unless they have
-- fired. Not returned: silences that have ended before.
with locked as (
    select s.id
    from tocsin.silence s
    where s.id = any(%(ids)s::uuid[]) and s.ended_at is null
    order by s.id
    for update
),
cancelled as (
    update tocsin.schedule c
    set status = 'cancelled', generation = c.generation + 1, updated_at = %(now)s
    from locked
    where c.id = locked.id and c.status = 'active'
)
update tocsin.silence s
set ended_at = least(s.ends_at, %(now)s)
from locked
where s.id = locked.id
returning s.id, s.matcher, s.starts_at, s.ends_at, s.reason, s.created_by, s.source, s.recurrence
