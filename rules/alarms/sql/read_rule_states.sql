-- The stored states of some rules, owners and instances, with the correlation ids of their alarms.
-- Locks nothing: put_rule_states compares versions. Index: the key, once for each state.
select item.event_rule, item.owner, item.instance, s.state, s.version, a.correlation_id
from unnest(%(rules)s::text[], %(owners)s::text[], %(instances)s::text[]) as item (event_rule, owner, instance)
cross join lateral (
    select *
    from tocsin.rule_state r
    where r.event_rule = item.event_rule and r.owner = item.owner and r.instance = item.instance
    offset 0
) s
left join tocsin.alarm a on a.id = s.alarm_id
