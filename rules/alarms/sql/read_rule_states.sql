-- The stored states of some rules and owners, with the correlation ids of their alarms. Locks
-- nothing: put_rule_states compares versions. Index: the key, once for each pair.
select w.event_rule, w.owner, s.state, s.version, a.correlation_id
from unnest(%(rules)s::text[], %(owners)s::text[]) as w (event_rule, owner)
cross join lateral (
    select * from tocsin.rule_state r where r.event_rule = w.event_rule and r.owner = w.owner offset 0
) s
left join tocsin.alarm a on a.id = s.alarm_id
