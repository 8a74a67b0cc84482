-- Moves the states of heartbeats to the partitions of their owners: an apply before the first worker did
-- not know them. Locks the rows in key order. Index: the key of rule_state.
with given as (
    select item.owner, item.partition
    from unnest(%(owners)s::text[], %(partitions)s::integer[]) as item (owner, partition)
),
locked as materialized (
    select s.event_rule, s.owner, s.instance, g.partition
    from tocsin.rule_state s
    join given g on g.owner = s.owner
    where s.lane = 'data' and starts_with(s.event_rule, 'heartbeat:')
    order by s.event_rule, s.owner, s.instance
    for update of s
)
update tocsin.rule_state s
set partition = l.partition, version = s.version + 1
from locked l
where s.event_rule = l.event_rule and s.owner = l.owner and s.instance = l.instance
