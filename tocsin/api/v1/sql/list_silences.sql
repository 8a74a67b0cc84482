-- A page of silences, the newest first; without `all` only those that have not ended. Locks nothing.
select s.id, s.matcher, s.starts_at, s.ends_at, s.reason, s.created_by, s.created_via, s.created_at, s.source, s.ended_at
from tocsin.silence s
where (%(all)s or (s.ended_at is null and s.ends_at > (select tocsin.instant())))
  and (%(first)s::uuid is null or s.id between %(first)s and %(last)s)
  and (%(after_created_at)s::timestamptz is null or (s.created_at, s.id) < (%(after_created_at)s, %(after_id)s::uuid))
order by s.created_at desc, s.id desc
limit %(limit)s
