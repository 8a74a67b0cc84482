-- Cancel these runs, in key order; returns the steps that were active. A run that has ended is left
-- alone and not returned.
with locked as (
    select a.id, a.active, item.reason
    from unnest(%(ids)s::uuid[], %(reasons)s::text[]) as item (id, reason)
    join tocsin.action a on a.id = item.id
    where a.state in ('gathering', 'queued', 'running')
    order by a.id
    for update of a
),
deleted as (
    delete from tocsin.action_wait w using locked l where w.action_id = l.id
)
update tocsin.action a
set state = 'cancelled', active = '{}', version = a.version + 1, ended_at = tocsin.instant(), error = l.reason,
    held_by = null, failing_since = null
from locked l
where a.id = l.id
returning a.id, a.name, a.owner, a.action_rule, a.group_key, a.correlation_id, a.event_id, l.active, l.reason
