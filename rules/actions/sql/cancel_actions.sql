-- End these actions before their time, in key order, with what was under way of each. One that has ended already is left
-- alone and not returned.
with victims as (
    select a.id, a.active, d.reason
    from unnest(%(ids)s::uuid[], %(reasons)s::text[]) as d (id, reason)
    join tocsin.action a on a.id = d.id
    where a.state in ('gathering', 'queued', 'running')
    order by a.id
    for update of a
),
forgotten as (
    delete from tocsin.action_wait w using victims v where w.action_id = v.id
)
update tocsin.action a
set state = 'cancelled', active = '{}', version = a.version + 1, ended_at = tocsin.instant(), error = v.reason
from victims v
where a.id = v.id
returning a.id, a.name, a.owner, a.action_rule, a.group_key, a.correlation_id, a.event_id, v.active, v.reason
