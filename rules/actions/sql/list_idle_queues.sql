-- Queues without an active run: no transaction is left that would begin the next one. Locks
-- nothing. Index: action_queued.
select distinct q.action_rule, q.group_key
from tocsin.action q
where q.state = 'queued'
  and not exists (
      select 1 from tocsin.action a
      where a.action_rule = q.action_rule and a.group_key = q.group_key and a.state = 'running')
