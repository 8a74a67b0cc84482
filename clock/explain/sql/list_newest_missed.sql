-- The newest missed events of schedules with some names. Locks nothing. Index: event_missed.
select seq, schedule, owner, payload
from tocsin.event
where type = 'schedule-missed' and schedule = any(%(names)s)
order by seq desc
limit %(limit)s
