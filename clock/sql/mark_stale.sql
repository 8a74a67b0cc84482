-- Series whose deadline passed (in microseconds): the last value stays, its freshness does not. The rows are locked by
-- lock_due_watchdogs.
update tocsin.current_value c
set freshness = 'stale', stale_since = timestamptz 'epoch' + d.deadline * interval '1 microsecond', version = c.version + 1
from unnest(%(owners)s::text[], %(keys)s::text[], %(deadlines)s::bigint[]) as d (owner, key, deadline)
where c.owner = d.owner and c.key = d.key
