-- Number of runs of each rule in each state, and the average duration of completed runs. Locks
-- nothing.
select a.action_rule as rule, a.name, a.state, count(*) as count,
       avg(extract(epoch from a.ended_at - a.started_at)) filter (where a.state = 'completed') as average_s
from tocsin.action a
where (%(since)s::timestamptz is null or a.started_at >= %(since)s)
  and (%(owners)s::text[] is null or tocsin.owner_matches(a.owner, %(owners)s))
group by a.action_rule, a.name, a.state
order by a.action_rule, a.name, a.state
