-- Instances of rules whose alarms ended or changed at least %(least)s times after %(since)s, the most
-- frequent first. Reads at most 10,000 ended and 10,000 open alarms by alarm_ended and
-- alarm_active_owner, and their events by event_of_alarm. Locks nothing.
with recent as (
    (
        select id, event_rule, owner, instance, 1 as ended
        from tocsin.alarm
        where state = 'resolved' and resolved_at > %(since)s
        order by resolved_at desc
        limit 10000
    )
    union all
    (
        select id, event_rule, owner, instance, 0
        from tocsin.alarm
        where state <> 'resolved' and state = 'open'
        limit 10000
    )
)
select recent.event_rule, recent.owner, recent.instance, sum(recent.ended + changed.times)::bigint
from recent
cross join lateral (
    select count(*) as times
    from tocsin.event e
    where e.alarm_id = recent.id and e.type = 'alarm-changed' and e.recorded_at > %(since)s
) changed
group by recent.event_rule, recent.owner, recent.instance
having sum(recent.ended + changed.times) >= %(least)s
order by 4 desc, 1, 2, 3
limit %(limit)s
