-- Phase 2: alarms that open, resolve, or both, in key order.
update tocsin.alarm a
set state = case when d.resolved_at is null then 'open' else 'resolved' end,
    opened_at = coalesce(d.opened_at, a.opened_at),
    resolved_at = d.resolved_at,
    resolved_reason = d.reason,
    version = a.version + 1
from (
    select locked.id, o.at as opened_at, r.at as resolved_at, r.reason
    from tocsin.alarm locked
    left join unnest(%(opened)s::uuid[], %(opened_at)s::timestamptz[]) as o (id, at) on o.id = locked.id
    left join unnest(%(resolved)s::uuid[], %(resolved_at)s::timestamptz[], %(reasons)s::text[]) as r (id, at, reason)
        on r.id = locked.id
    where locked.id = any (%(opened)s::uuid[] || %(resolved)s::uuid[])
    order by locked.id
    for update of locked
) as d
where a.id = d.id
