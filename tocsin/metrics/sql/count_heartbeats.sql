-- Heartbeats by the cause of their open alarm; `ok` without one. Locks nothing. Index: the key of rule_state.
select case when s.phase = 'open' then coalesce(s.state #>> '{alarm,cause}', 'late') else 'ok' end, count(*)
from tocsin.rule_state s
where s.event_rule >= 'heartbeat:' and s.event_rule < 'heartbeat;' and starts_with(s.event_rule, 'heartbeat:')
group by 1
