-- Runs of some owners that died within the last day, counted up to a number. Locks nothing. Index: action_dead.
select count(*) as runs
from (
    select 1
    from tocsin.action a
    where a.state in ('failed', 'timed_out') and a.ended_at > (select tocsin.instant()) - interval '1 day'
      and a.action_rule not like 'notify:%%' and tocsin.owner_matches(a.owner, %(owners)s)
    limit %(most)s
) counted
