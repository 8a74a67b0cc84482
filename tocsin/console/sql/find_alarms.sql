-- Alarms of some owners whose rule, owner or id has a text, among the newest ones: the walk is bounded
-- where the text is rare. Locks nothing. Index: alarm_newest.
select a.id, a.event_rule, a.owner, a.state
from (
    select n.id, n.event_rule, n.owner, n.state, n.since
    from tocsin.alarm n
    order by n.since desc
    limit %(within)s
) a
where tocsin.owner_matches(a.owner, %(owners)s)
  and (position(lower(%(part)s) in lower(a.event_rule)) > 0 or position(lower(%(part)s) in lower(a.owner)) > 0
       or starts_with(a.id::text, lower(%(part)s)))
order by a.state = 'resolved', a.since desc
limit %(most)s
