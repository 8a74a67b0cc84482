-- A chunk of silences that ended before the log begins: no event about them is left. Locks nothing.
-- Index: silence_ended.
select s.ended_at::text, s.id::text, true
from tocsin.silence s
where s.ended_at is not null and s.ended_at < %(horizon_at)s
  and (s.ended_at, s.id) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::uuid)
order by s.ended_at, s.id
limit %(limit)s
