-- The alarms of some rules that were open after the record of a seq: those that are open now, and
-- those that were resolved since, without those that were opened since. Locks nothing.
-- Index: alarm_active, event_of_rule, event_of_alarm.
select a.event_rule, a.owner, a.instance, a.opened_at
from tocsin.alarm a
where a.id in (
    select o.id from tocsin.alarm o where o.event_rule = any(%(rules)s) and o.state = 'open'
    union all
    select e.alarm_id
    from tocsin.event e
    where e.rule = any(%(rules)s) and e.rule <> '' and e.seq > %(seq)s and e.type = 'alarm-resolved'
  )
  and not exists (
    select from tocsin.event e
    where e.alarm_id = a.id and e.seq > %(seq)s and e.type = 'alarm-opened'
  )
order by a.event_rule, a.owner, a.instance
