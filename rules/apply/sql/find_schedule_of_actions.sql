-- A schedule from outside of the rule files that runs one of some actions. Scans the schedules:
-- used only when actions are removed.
select owner, name, action
from tocsin.schedule
where action = any (%(actions)s::text[]) and source = 'api' and status in ('active', 'paused')
order by owner, name
limit 1
