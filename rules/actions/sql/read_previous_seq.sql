-- The event of the previous run of the same rule: later events are new. 0 for the first run. Index:
-- action_of_rule.
select coalesce((
    select a.event_seq
    from tocsin.action a
    where a.action_rule = %(rule)s and a.started_at <= %(started_at)s and a.event_seq < %(seq)s
    order by a.started_at desc, a.event_seq desc
    limit 1
), 0)
