-- Stores states in key order, and returns how many were written. Fewer than given: the clock or an
-- apply changed one since it was read, and the caller plans again.
with given as (
    select item.*
    from unnest(%(rules)s::text[], %(owners)s::text[], %(instances)s::text[], %(phases)s::text[], %(alarm_ids)s::uuid[],
                %(recheck_at)s::timestamptz[], %(states)s::jsonb[], %(versions)s::bigint[])
        as item (event_rule, owner, instance, phase, alarm_id, recheck_at, state, version)
),
locked as materialized (
    select s.event_rule, s.owner, s.instance, s.version
    from given item
    join tocsin.rule_state s on s.event_rule = item.event_rule and s.owner = item.owner and s.instance = item.instance
    order by s.event_rule, s.owner, s.instance
    for update of s
),
changed as (
    update tocsin.rule_state s
    set phase = item.phase, alarm_id = item.alarm_id, recheck_at = item.recheck_at, state = item.state,
        version = s.version + 1
    from given item
    join locked l
        on l.event_rule = item.event_rule and l.owner = item.owner and l.instance = item.instance
        and l.version = item.version
    where s.event_rule = item.event_rule and s.owner = item.owner and s.instance = item.instance
        and s.version = item.version
    returning 1
),
added as (
    insert into tocsin.rule_state (event_rule, owner, instance, lane, partition, phase, alarm_id, recheck_at, state)
    select item.event_rule, item.owner, item.instance, %(lane)s, %(partition)s, item.phase, item.alarm_id,
           item.recheck_at, item.state
    from given item
    where item.version = 0
    order by item.event_rule, item.owner, item.instance
    on conflict do nothing
    returning 1
)
select (select count(*) from changed) + (select count(*) from added)
