-- Active notification runs by state, and those that were given up; at most 100,000 of each are counted.
-- Indexes: action_active, action_dead. Locks nothing.
select n.status, count(*), coalesce(max(extract(epoch from (select tocsin.instant()) - n.failing_since)), 0)
from (
    (select case when a.failing_since is not null then 'failing'
                 when a.active -> '0' ->> 'state' = 'due' then 'due'
                 else coalesce(a.active -> '0' ->> 'rest', 'gathering') end as status,
            a.failing_since
     from tocsin.action a
     where a.state = 'running' and a.action_rule like 'notify:%%'
     limit 100000)
    union all
    (select 'failed', null
     from tocsin.action a
     where a.state in ('failed', 'timed_out') and a.action_rule like 'notify:%%'
     limit 100000)
) n
group by n.status
