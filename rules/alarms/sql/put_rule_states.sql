-- Stores states in key order, and returns how many were written. Fewer than given: the clock or an
-- apply changed one since it was read, and the caller plans again.
with given as (
    select item.*
    from unnest(%(rules)s::text[], %(owners)s::text[], %(phases)s::text[], %(alarm_ids)s::uuid[], %(states)s::jsonb[],
                %(versions)s::bigint[]) as item (event_rule, owner, phase, alarm_id, state, version)
),
locked as materialized (
    select s.event_rule, s.owner, s.version
    from given item
    join tocsin.rule_state s on s.event_rule = item.event_rule and s.owner = item.owner
    order by s.event_rule, s.owner
    for update of s
),
changed as (
    update tocsin.rule_state s
    set phase = item.phase, alarm_id = item.alarm_id, state = item.state, version = s.version + 1
    from given item
    join locked l on l.event_rule = item.event_rule and l.owner = item.owner and l.version = item.version
    where s.event_rule = item.event_rule and s.owner = item.owner and s.version = item.version
    returning 1
),
added as (
    insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, alarm_id, state)
    select item.event_rule, item.owner, %(lane)s, %(partition)s, item.phase, item.alarm_id, item.state
    from given item
    where item.version = 0
    order by item.event_rule, item.owner
    on conflict do nothing
    returning 1
)
select (select count(*) from changed) + (select count(*) from added)
