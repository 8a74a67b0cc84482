-- Phase 2: locks states in key order, and counts those that are still the ones that were read.
select count(*)
from (
    select 1
    from unnest(%(rules)s::text[], %(owners)s::text[], %(versions)s::bigint[]) as d (event_rule, owner, version)
    join tocsin.rule_state s on s.event_rule = d.event_rule and s.owner = d.owner and s.version = d.version
    order by s.event_rule, s.owner
    for update of s
) as locked
