-- A chunk of alarms that were resolved before the log begins, and whether no event of theirs is
-- left, in the log or kept. Locks nothing. Index: alarm_ended, event_of_alarm, event_kept_of_alarm.
select a.resolved_at::text, a.id::text,
       not exists (select from tocsin.event e where e.alarm_id = a.id and e.seq >= %(horizon)s)
       and not exists (select from tocsin.event_kept k where k.alarm_id = a.id)
from (
    select * from tocsin.alarm
    where state = 'resolved' and resolved_at < %(horizon_at)s
      and (resolved_at, id) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::uuid)
    order by resolved_at, id
    limit %(limit)s
) a
order by a.resolved_at, a.id
