-- The windows of maintenances that have not ended. Index: silence_window.
select s.id, s.source, s.matcher, s.starts_at, s.ends_at, s.reason, s.recurrence
from tocsin.silence s
where s.ended_at is null and s.source = any(%(sources)s::text[])
