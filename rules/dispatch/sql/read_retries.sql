-- The retry policies of some schedules that have one. Locks nothing. Index: schedule's (owner, name).
select s.owner, s.name, s.retry
from unnest(%(owners)s::text[], %(names)s::text[]) as item (owner, name)
join tocsin.schedule s on s.owner = item.owner and s.name = item.name
where s.retry is not null
