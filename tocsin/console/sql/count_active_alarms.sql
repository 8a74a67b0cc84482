-- Pending and open alarms of some owners by state and severity, counted up to a number in all. Locks
-- nothing. Index: alarm_active_owner.
select a.state, a.severity, count(*) as alarms, count(*) filter (where a.acknowledged_at is not null) as acknowledged
from (
    select a.state, a.severity, a.acknowledged_at
    from tocsin.alarm a
    where a.state <> 'resolved' and tocsin.owner_matches(a.owner, %(owners)s)
    limit %(most)s
) a
group by a.state, a.severity
order by a.severity desc, a.state
