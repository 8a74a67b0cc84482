-- The runs that an alarm started, oldest first. Index: action_of_alarm for active runs, otherwise a
-- table scan.
select id, name, action_rule, state, started_at, ended_at, error
from tocsin.action
where alarm_id = %(alarm_id)s
order by started_at, id
