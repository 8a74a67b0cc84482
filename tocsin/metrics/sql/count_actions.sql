-- Active and dead runs by state; at most 100,000 of each are counted. Index: action_active,
-- action_dead. Locks nothing.
select a.state, count(*)
from (
    (select state from tocsin.action where state in ('gathering', 'queued', 'running') limit 100000)
    union all
    (select state from tocsin.action where state in ('failed', 'timed_out') limit 100000)
) a
group by a.state
