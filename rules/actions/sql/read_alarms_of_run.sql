-- The alarms of a run as they are now, in the order in which they joined, and the newest event of each
-- that the run knows. Locks nothing. Indexes: action_event_of, alarm's key.
select a.id, a.event_rule as rule, a.owner, a.state, a.severity, a.since, a.payload,
       coalesce(a.payload ->> 'message', '') as message,
       a.acknowledged_at is not null as acknowledged, coalesce(a.acknowledged_by, '') as acknowledged_by,
       coalesce(a.snoozed_until > (select tocsin.instant()), false) as snoozed,
       a.snoozed_until, coalesce(a.snoozed_by, '') as snoozed_by, a.resolved_at, m.newest_seq
from (
    select l.alarm_id, min(l.event_seq) as first_seq, max(l.event_seq) as newest_seq
    from tocsin.action_event l
    where l.action_id = %(id)s and l.alarm_id is not null
    group by l.alarm_id
) m
join tocsin.alarm a on a.id = m.alarm_id
order by m.first_seq, a.id
