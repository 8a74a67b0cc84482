-- Silences whose end the clock has fired and the record lane has not written. Index: silence's key.
select s.id, s.matcher, s.starts_at, s.ends_at, s.reason, s.created_by, s.source, s.recurrence
from tocsin.silence s
where s.id = any(%(ids)s::uuid[]) and s.ended_at is null
