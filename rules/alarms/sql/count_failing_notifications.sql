-- Notifications that fail now and since when the oldest does, those that were given up within the last day,
-- and their channels. At most 100,000 are counted. Locks nothing. Index: action_failing.
select count(*) filter (where f.state = 'running'), min(f.failing_since) filter (where f.state = 'running'),
       count(*) filter (where f.state = 'failed' and f.ended_at > (select tocsin.instant()) - interval '1 day'),
       array_agg(distinct f.channel) filter (
           where f.state = 'running' or f.ended_at > (select tocsin.instant()) - interval '1 day'),
       (select tocsin.instant())
from (
    select a.state, a.failing_since, a.ended_at, a.document -> 'notify' ->> 'channel' as channel
    from tocsin.action a
    where a.failing_since is not null
    order by a.failing_since
    limit 100000
) f
