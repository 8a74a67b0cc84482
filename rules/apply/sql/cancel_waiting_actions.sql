-- Phase 2: actions that have not begun are cancelled, in key order. One that began meanwhile is not ours any more, and is
-- not returned. Index: action_under_way.
with reasons as (
    select r.action_rule, r.reason
    from unnest(%(rules)s::text[], %(reasons)s::text[]) as r (action_rule, reason)
),
waiting as (
    select a.id, r.reason
    from reasons r
    join tocsin.action a on a.action_rule = r.action_rule and a.state in ('gathering', 'queued')
    order by a.id
    for update of a
)
update tocsin.action a
set state = 'cancelled', active = '{}', version = a.version + 1, ended_at = tocsin.instant(),
    error = w.reason
from waiting w
where a.id = w.id
returning a.id, a.name, a.owner, a.correlation_id, a.event_id, w.reason
