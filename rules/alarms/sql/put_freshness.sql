-- Stores the freshness of series after a batch, in key order, and up to which staleness the rules
-- have processed it. The clock cannot have changed it since: it would have deleted the watchdog
-- that disarm_watchdogs counts.
update tocsin.current_value c
set freshness = case when d.stale_since is null then 'fresh' else 'stale' end,
    stale_since = d.stale_since, handled_stale_since = d.handled_stale_since, version = c.version + 1
from (
    select item.*
    from unnest(%(owners)s::text[], %(keys)s::text[], %(stale_since)s::timestamptz[], %(handled_stale_since)s::timestamptz[])
        as item (owner, key, stale_since, handled_stale_since)
    join tocsin.current_value locked on locked.owner = item.owner and locked.key = item.key
    order by locked.owner, locked.key
    for update of locked
) as d
where c.owner = d.owner and c.key = d.key
