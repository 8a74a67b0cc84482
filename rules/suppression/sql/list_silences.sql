-- Silences that have not ended, the one that ends first on top; with `all`, those that have ended too,
-- the newest first.
select s.id, s.matcher, s.starts_at, s.ends_at, s.reason, s.created_by, s.created_via, s.created_at, s.source, s.ended_at
from tocsin.silence s
where %(all)s or (s.ended_at is null and s.ends_at > (select tocsin.instant()))
order by case when %(all)s then s.created_at end desc, s.ends_at, s.id
limit %(limit)s
