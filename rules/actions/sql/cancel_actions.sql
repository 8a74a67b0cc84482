-- Cancel these runs, in key order; returns the steps that were active. A run that has ended is left
-- alone and not returned. A run that has begun, and whose `finally` has not, stays running: its
-- document is returned, and begin_finally makes the first of these steps due.
with locked as (
    select a.id, a.active, item.reason,
           a.state = 'running' and a.ending is null and a.document ? 'finally' as has_finally
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
set state = case when l.has_finally then 'running' else 'cancelled' end,
    ending = case when l.has_finally then 'cancelled' else a.ending end,
    ended_at = case when not l.has_finally then tocsin.instant() end,
    active = '{}', version = a.version + 1, error = l.reason,
    held_by = null, failing_since = null
from locked l
where a.id = l.id
returning a.id, a.name, a.owner, a.action_rule, a.group_key, a.correlation_id, a.event_id, l.active, l.reason,
          case when l.has_finally then a.document end
