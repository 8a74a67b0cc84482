-- The first two silences whose id lies in a range: of an id, or of the beginning of one.
select s.id, s.matcher, s.starts_at, s.ends_at, s.reason, s.created_by, s.created_via, s.created_at, s.source, s.ended_at
from tocsin.silence s
where s.id between %(first)s and %(last)s
order by s.id
limit 2
