-- The alarms of some owners that were open at any time since an instant, a bounded number of those that are open
-- and of those that ended since. Locks nothing. Indexes: alarm_active_owner, alarm_ended.
(
    select a.severity, a.opened_at, a.resolved_at, a.event_rule, a.owner
    from tocsin.alarm a
    where a.state = 'open' and a.opened_at is not null and tocsin.owner_matches(a.owner, %(owners)s)
    limit %(most)s
)
union all
(
    select e.severity, e.opened_at, e.resolved_at, e.event_rule, e.owner
    from (
        select n.severity, n.opened_at, n.resolved_at, n.event_rule, n.owner
        from tocsin.alarm n
        where n.state = 'resolved' and n.resolved_at > %(since)s
        order by n.resolved_at desc
        limit %(most)s
    ) e
    where e.opened_at is not null and tocsin.owner_matches(e.owner, %(owners)s)
)
