-- The missed events of a schedule whose span touches this second, newest first. Locks nothing.
-- Index: event_missed.
select id, seq, recorded_at, payload
from tocsin.event
where type = 'schedule-missed' and schedule = %(name)s and owner = %(owner)s
  and (payload ->> 'first')::timestamptz <= %(until)s and (payload ->> 'last')::timestamptz >= %(asked)s
order by seq desc
limit 100
