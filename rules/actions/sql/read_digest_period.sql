-- The previous run of the same rule, and the next occurrence of the schedule that started this run.
-- Locks nothing. Indexes: action_of_rule, the keys of schedule and timer.
select p.event_seq, p.started_at,
       (select t.nominal_at
        from tocsin.schedule s
        join tocsin.timer t on t.kind = 'schedule-tick' and t.ref = s.id::text and t.key = ''
        where s.name = %(schedule)s and s.owner = %(owner)s)
from (select) as one
left join lateral (
    select a.event_seq, a.started_at
    from tocsin.action a
    where a.action_rule = %(rule)s and a.started_at <= %(started_at)s and a.event_seq < %(seq)s
    order by a.started_at desc, a.event_seq desc
    limit 1
) p on true
