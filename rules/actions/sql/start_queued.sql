-- Begin the oldest queued run of each (rule, group) without an active run. A row that another
-- transaction has locked is skipped: that transaction begins it. Index: action_queued.
with turns as (
    select distinct item.action_rule, item.group_key
    from unnest(%(rules)s::text[], %(groups)s::text[]) as item (action_rule, group_key)
    where not exists (
        select 1 from tocsin.action a
        where a.action_rule = item.action_rule and a.group_key = item.group_key and a.state = 'running')
),
next as (
    select picked.id
    from turns t
    cross join lateral (
        select a.id
        from tocsin.action a
        where a.action_rule = t.action_rule and a.group_key = t.group_key and a.state = 'queued'
        order by a.started_at, a.event_seq
        limit 1
        for update skip locked
    ) picked
    order by picked.id
)
update tocsin.action a
set state = 'running', active = '{"0": {"attempt": 1, "state": "due"}}', version = a.version + 1
from next n
where a.id = n.id
returning a.id, a.name, a.owner, a.correlation_id, a.event_id
