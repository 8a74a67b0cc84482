-- The newest run of the own action of each schedule. `schedule:` is a text form of
-- schemas/values/rule_ref.py. Locks nothing. Index: action_of_rule.
select item.owner, item.name as schedule, l.*
from unnest(%(owners)s::text[], %(names)s::text[]) as item (owner, name)
cross join lateral (
    select a.id, a.state, a.started_at, a.ended_at, a.error,
           coalesce((select max(s.attempt) from tocsin.action_step s where s.action_id = a.id), 0) as attempts
    from tocsin.action a
    where a.action_rule = 'schedule:' || item.name and a.owner = item.owner
    order by a.started_at desc
    limit 1
) l
