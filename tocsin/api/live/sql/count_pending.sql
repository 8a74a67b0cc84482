-- The number of schedules that wait for their next fire, of the owners that the caller may view. Counts
-- no further than the limit.
select count(*)
from (
    select
    from tocsin.schedule s
    where s.status = 'active' and s.owner not like 'tocsin:%%' and tocsin.owner_matches(s.owner, %(owners)s)
    limit %(limit)s
) as pending
