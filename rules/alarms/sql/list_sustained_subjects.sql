-- The rules over series that have a sustain armed for some owners. Locks nothing. Index:
-- alarm_active_owner.
select s.event_rule, s.owner, s.instance
from tocsin.alarm a
join tocsin.rule_state s
    on s.event_rule = a.event_rule and s.owner = a.owner and s.instance = a.instance and s.alarm_id = a.id and s.lane = 'data'
where a.owner = any (%(owners)s::text[]) and a.state <> 'resolved' and s.phase in ('pending', 'clearing')
order by s.event_rule, s.owner, s.instance
