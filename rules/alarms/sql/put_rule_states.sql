-- Stores states in key order, and returns how many were written. Fewer than given: the clock or an
-- apply changed one since it was read, and the caller plans again.
with given as (
    select g.*
    from unnest(%(rules)s::text[], %(owners)s::text[], %(phases)s::text[], %(alarm_ids)s::uuid[], %(states)s::jsonb[],
                %(versions)s::bigint[]) as g (event_rule, owner, phase, alarm_id, state, version)
),
locked as materialized (
    select s.event_rule, s.owner, s.version
    from given g
    join tocsin.rule_state s on s.event_rule = g.event_rule and s.owner = g.owner
    order by s.event_rule, s.owner
    for update of s
),
changed as (
    update tocsin.rule_state s
    set phase = g.phase, alarm_id = g.alarm_id, state = g.state, version = s.version + 1
    from given g
    join locked l on l.event_rule = g.event_rule and l.owner = g.owner and l.version = g.version
    where s.event_rule = g.event_rule and s.owner = g.owner and s.version = g.version
    returning 1
),
added as (
    insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, alarm_id, state)
    select g.event_rule, g.owner, %(lane)s, %(partition)s, g.phase, g.alarm_id, g.state
    from given g
    where g.version = 0
    order by g.event_rule, g.owner
    on conflict do nothing
    returning 1
)
select (select count(*) from changed) + (select count(*) from added)
