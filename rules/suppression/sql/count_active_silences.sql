-- The number of silences that have not ended. Index: silence_active.
select count(*)
from tocsin.silence s
where s.ended_at is null and s.ends_at > (select tocsin.instant())
