-- Schedules by their last change, the newest first, with the newest run of their own action; optionally of
-- some statuses, one action, or changed since an instant; of the owners that the caller may view.
select s.id, s.owner, s.name, s.type, s.action, s.status, s.payload, s.created_by, s.created_via, s.created_at,
       s.updated_at, s.last_occurrence, t.fire_at, run.state as result, run.error, run.started_at, run.ended_at
from tocsin.schedule s
left join tocsin.timer t on t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = ''
left join lateral (
    select a.state, a.error, a.started_at, a.ended_at
    from tocsin.action a
    where a.action_rule = 'schedule:' || s.name and a.owner = s.owner
    order by a.started_at desc
    limit 1
) as run on s.action is not null
where s.owner not like 'tocsin:%%' and tocsin.owner_matches(s.owner, %(owners)s)
  and (%(id)s::uuid is null or s.id = %(id)s)
  and (%(statuses)s::text[] is null or s.status = any(%(statuses)s))
  and (%(action)s::text is null or s.action = %(action)s)
  and (%(since)s::timestamptz is null or s.updated_at >= %(since)s)
order by s.updated_at desc, s.id
limit %(limit)s
