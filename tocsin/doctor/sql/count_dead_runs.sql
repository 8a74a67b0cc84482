-- The number of runs that died within the last day and were not retried, and when the newest did.
-- Index: action_dead.
select count(*), max(ended_at)
from tocsin.action
where state in ('failed', 'timed_out') and ended_at > (select tocsin.instant()) - interval '1 day'
