-- How many alarms of some owners are open, counted up to a number. Locks nothing. Index: alarm_active_owner.
select count(*)
from (
    select 1
    from tocsin.alarm a
    where a.state = 'open' and tocsin.owner_matches(a.owner, %(owners)s)
    limit %(most)s
) counted
