-- A schedule that nobody applied and that runs one of some actions. Walks the schedules: only before actions are removed.
select owner, name, action
from tocsin.schedule
where action = any (%(actions)s::text[]) and source = 'api' and status in ('active', 'paused')
order by owner, name
limit 1
