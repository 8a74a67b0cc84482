-- A page of the runs of some owners, the newest first. Locks nothing. Index: action_newest.
select a.id, a.name, a.action_rule as rule, a.owner, a.state, a.started_at, a.ended_at, a.error, a.alarm_id, a.event_id,
       a.correlation_id,
       coalesce((select max(s.attempt) from tocsin.action_step s where s.action_id = a.id), 0) as attempts
from tocsin.action a
where tocsin.owner_matches(a.owner, %(owners)s)
  and (%(states)s::text[] is null or a.state = any(%(states)s::text[]))
  and (%(name)s::text is null or a.name = %(name)s)
  and (%(rule)s::text is null or a.action_rule = %(rule)s)
  and (%(owner)s::text is null or a.owner = %(owner)s)
  and (%(since)s::timestamptz is null or a.started_at >= %(since)s)
  and (%(first)s::uuid is null or a.id between %(first)s and %(last)s)
  and (%(after_started_at)s::timestamptz is null
       or (a.started_at, a.id) < (%(after_started_at)s, %(after_id)s::uuid))
order by a.started_at desc, a.id desc
limit %(limit)s
