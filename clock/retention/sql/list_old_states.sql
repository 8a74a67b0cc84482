-- A chunk of states of rules, and whether they may be deleted: no alarm is open or pending, and its
-- series, or all series of its owner, are gone; for a rule over events, the state is older than the retention of
-- series. Locks nothing. Index: the keys of rule_state and current_value.
select s.event_rule, s.owner, s.instance,
       s.phase = 'ok' and not starts_with(s.event_rule, 'heartbeat:')
       and case s.lane
           when 'data' then not exists (
               select from tocsin.current_value c where c.owner = s.owner and (s.instance = '' or c.key = s.instance))
           else coalesce(greatest(
               (s.state ->> 'last_opened_at')::timestamptz, (s.state ->> 'last_since')::timestamptz,
               (select max((t.track ->> 1)::timestamptz) from jsonb_each(s.state -> 'tracks') as t (key, track))
           ), '-infinity') < %(series_until)s
       end
from tocsin.rule_state s
where (s.event_rule, s.owner, s.instance) > ((%(after)s::text[])[1], (%(after)s::text[])[2], (%(after)s::text[])[3])
order by s.event_rule, s.owner, s.instance
limit %(limit)s
