-- End schedules whose last tick was consumed: a one-shot is `fired`, a recurring one `ended`. In
-- key order.
update tocsin.schedule s
set status = d.status, last_occurrence = timestamptz 'epoch' + d.done_until * interval '1 microsecond',
    updated_at = %(now)s
from (
    select e.id, e.status, e.done_until
    from unnest(%(ids)s::uuid[], %(statuses)s::text[], %(done_until)s::bigint[]) as e (id, status, done_until)
    join tocsin.schedule locked on locked.id = e.id
    order by e.id
    for update of locked
) as d
where s.id = d.id
