-- A chunk of states of rules, and whether they may be deleted: no alarm is open or pending, and the
-- owner has no series any more; for a rule over events, the state is older than the retention of
-- series. Locks nothing. Index: the keys of rule_state and current_value.
select s.event_rule, s.owner,
       s.phase = 'ok'
       and case s.lane
           when 'data' then not exists (select from tocsin.current_value c where c.owner = s.owner)
           else coalesce(greatest(
               (s.state ->> 'last_opened_at')::timestamptz, (s.state ->> 'last_since')::timestamptz,
               (select max((t.track ->> 1)::timestamptz) from jsonb_each(s.state -> 'tracks') as t (key, track))
           ), '-infinity') < %(series_until)s
       end
from tocsin.rule_state s
where (s.event_rule, s.owner) > ((%(after)s::text[])[1], (%(after)s::text[])[2])
order by s.event_rule, s.owner
limit %(limit)s
