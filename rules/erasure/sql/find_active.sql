-- What is active for an owner, with the number and an example of each. Index: the keys of current_value and
-- timer, system_member_owner, alarm_active_owner; reads active runs and the current documents.
select 'schedule', count(*), min(s.name)
from tocsin.schedule s where s.owner = %(owner)s and s.status in ('active', 'paused')
union all
select 'alarm', count(*), min(a.event_rule)
from tocsin.alarm a where a.owner = %(owner)s and a.state <> 'resolved'
union all
select 'run', count(*), min(a.id::text)
from tocsin.action a where a.owner = %(owner)s and a.state in ('gathering', 'queued', 'running')
union all
select 'series', count(*), min(c.key)
from tocsin.current_value c
where c.owner = %(owner)s
  and (c.handled_stale_since is distinct from c.stale_since
       or exists (select from tocsin.timer t where t.kind = 'watchdog' and t.ref = tocsin.token(c.owner) and t.key = c.key))
union all
select 'system', count(*), min(m.system)
from tocsin.system_member m where m.owner = %(owner)s
union all
select 'heartbeat', count(*), min(s.event_rule)
from tocsin.rule_state s where s.owner = %(owner)s and starts_with(s.event_rule, 'heartbeat:')
