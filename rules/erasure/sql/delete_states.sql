-- The states of rules about series of an owner that are gone, in key order. Index: the keys of rule_state and
-- current_value.
with gone as materialized (
    select s.event_rule, s.owner, s.instance
    from tocsin.rule_state s
    where s.owner = %(owner)s and s.phase = 'ok' and not starts_with(s.event_rule, 'heartbeat:')
      and not exists (
          select from tocsin.current_value c
          where c.owner = s.owner and s.lane = 'data' and (s.instance = '' or c.key = s.instance))
    order by s.event_rule, s.owner, s.instance
    for update of s skip locked
)
delete from tocsin.rule_state s using gone g
where s.event_rule = g.event_rule and s.owner = g.owner and s.instance = g.instance
