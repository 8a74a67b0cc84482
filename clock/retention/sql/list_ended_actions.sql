-- A chunk of runs that ended before the log begins, and whether no record of theirs is left:
-- neither the events they are about nor a step. A run that can be retried stays for its own
-- retention. Locks nothing. Index: action_ended, action_step_of, action_event_of.
select a.ended_at::text, a.id::text,
       a.event_seq < %(horizon)s
       and (a.state not in ('failed', 'timed_out') or a.ended_at < %(dead_actions_until)s)
       and not exists (select from tocsin.action_step s where s.action_id = a.id and s.seq >= %(horizon)s)
       and not exists (select from tocsin.action_event l where l.action_id = a.id and l.event_seq >= %(horizon)s)
from (
    select * from tocsin.action
    where ended_at is not null and ended_at < %(horizon_at)s
      and (ended_at, id) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::uuid)
    order by ended_at, id
    limit %(limit)s
) a
order by a.ended_at, a.id
