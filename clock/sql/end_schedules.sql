-- End schedules whose last tick was consumed: a one-shot is `fired`, a recurring one `ended`. In
-- key order.
update tocsin.schedule s
set status = d.status,
    last_occurrence = coalesce(timestamptz 'epoch' + d.done_until * interval '1 microsecond', s.last_occurrence),
    last_identity = case when d.done_until is null then s.last_identity else d.done_identity end,
    updated_at = %(now)s
from (
    select e.*
    from unnest(%(ids)s::uuid[], %(statuses)s::text[], %(done_until)s::bigint[], %(done_identities)s::text[])
        as e (id, status, done_until, done_identity)
    join tocsin.schedule locked on locked.id = e.id
    order by e.id
    for update of locked
) as d
where s.id = d.id
