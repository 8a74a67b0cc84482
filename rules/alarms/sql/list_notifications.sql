-- Notification runs, those that fail first and then the newest: active ones and those that were given up,
-- or only those of some states, a channel or an alarm. The states are those of rules/alarms/notifications.py.
-- Locks nothing. Indexes: action_active and action_dead; for an alarm action_event_of_alarm.
with found as (
    select a.*,
           case when a.state in ('failed', 'timed_out') then 'failed'
                when a.state = 'cancelled' then 'cancelled'
                when a.state = 'completed' then 'completed'
                when a.failing_since is not null then 'failing'
                when a.active -> '0' ->> 'state' = 'due' then 'due'
                else coalesce(a.active -> '0' ->> 'rest', 'gathering') end as status
    from tocsin.action a
    where a.action_rule like 'notify:%%'
      and (%(alarm_id)s::uuid is not null or a.state in ('gathering', 'queued', 'running') or a.state in ('failed', 'timed_out'))
      and (%(alarm_id)s::uuid is null
           or a.id in (select l.action_id from tocsin.action_event l where l.alarm_id = %(alarm_id)s))
      and (%(owners)s::text[] is null or tocsin.owner_matches(a.owner, %(owners)s))
      and (%(channel)s::text is null or a.document -> 'notify' ->> 'channel' = %(channel)s)
)
select f.id, f.action_rule as route, f.document -> 'notify' ->> 'channel' as channel, f.owner, f.status as state,
       f.started_at, f.ended_at, f.failing_since, f.held_by, f.group_key,
       coalesce((f.active -> '0' -> 'channel' ->> 'count')::integer, 0) as messages,
       coalesce((f.active -> '0' -> 'channel' ->> 'failures')::integer, 0) as failures,
       (f.active -> '0' -> 'channel' ->> 'delivered_at')::timestamptz as delivered_at,
       coalesce((f.active -> '0' -> 'fallback' ->> 'count')::integer, 0) as fallback_messages,
       coalesce(f.active -> '0' -> 'channel' ->> 'error', f.error, f.result ->> 'reason', '') as error,
       (select count(distinct l.alarm_id) from tocsin.action_event l where l.action_id = f.id) as alarms,
       (select t.fire_at from tocsin.timer t where t.kind = 'runbook-wait' and t.ref = f.id::text and t.key = '0') as next_at
from found f
where %(states)s::text[] is null or f.status = any(%(states)s::text[])
order by f.failing_since nulls last, f.started_at desc, f.id
limit %(limit)s
