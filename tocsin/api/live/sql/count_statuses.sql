-- The number of schedules by status, of the owners that the caller may view.
select s.status, count(*) as number
from tocsin.schedule s
where s.owner not like 'tocsin:%%' and tocsin.owner_matches(s.owner, %(owners)s)
group by s.status
