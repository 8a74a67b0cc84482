-- Phase 2: cancels runs that have not started, in key order. A run that the clock has started in
-- the meantime is not returned. Index: action_active.
with reasons as (
    select item.action_rule, item.reason
    from unnest(%(rules)s::text[], %(reasons)s::text[]) as item (action_rule, reason)
),
unstarted as (
    select a.id, item.reason
    from reasons item
    join tocsin.action a on a.action_rule = item.action_rule and a.state in ('gathering', 'queued')
    order by a.id
    for update of a
)
update tocsin.action a
set state = 'cancelled', active = '{}', version = a.version + 1, ended_at = tocsin.instant(),
    error = u.reason
from unstarted u
where a.id = u.id
returning a.id, a.name, a.owner, a.correlation_id, a.event_id, u.reason
