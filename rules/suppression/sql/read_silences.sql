-- The silences in force now. Index: silence_active.
select s.id, s.matcher, s.starts_at, s.ends_at, s.reason, s.created_by, s.source
from tocsin.silence s
where s.ended_at is null and s.ends_at > (select tocsin.instant()) and s.starts_at <= (select tocsin.instant())
