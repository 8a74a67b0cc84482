-- The owner and name of a schedule of some owners; no row for one of another owner. Those of Tocsin
-- itself are not found. Locks nothing. Index: schedule's key.
select s.owner, s.name
from tocsin.schedule s
where s.id = %(id)s and tocsin.owner_matches(s.owner, %(owners)s) and s.owner not like 'tocsin:%%'
