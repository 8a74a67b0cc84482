-- A chunk of the states of some rules that have an alarm, in key order. Takes no lock: put_rule_states
-- compares the version. Index: the keys of rule_state and alarm.
select s.event_rule, s.owner, s.instance, s.lane, s.partition, s.version, s.state, a.correlation_id
from tocsin.rule_state s
join tocsin.alarm a on a.id = s.alarm_id
where s.event_rule = any (%(rules)s::text[]) and s.phase <> 'ok'
  and (s.event_rule, s.owner, s.instance) > (%(rule)s, %(owner)s, %(instance)s)
order by s.event_rule, s.owner, s.instance
limit %(limit)s
