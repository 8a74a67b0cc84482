-- A chunk of arrival gaps that lie before all remaining datapoints and the arrivals that a replay of
-- them begins with, and whether they may be deleted: no watched series of the partition is fresh
-- since before the gap. Locks nothing. Index: arrival_gap_ended; reads every watchdog once, if there
-- are such gaps.
with old as materialized (
    select g.ended_at, g.partition, g.began_at
    from tocsin.arrival_gap g
    where g.ended_at < %(gaps_until)s
      and (g.ended_at, g.partition) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::integer)
    order by g.ended_at, g.partition
    limit %(limit)s
),
oldest as (
    select c.partition, min(c.arrived_at) as arrived_at
    from tocsin.timer t
    join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
    where t.kind = 'watchdog' and c.freshness = 'fresh' and exists (select from old)
    group by c.partition
)
select o.ended_at::text, o.partition::text, coalesce(o.began_at < f.arrived_at, true)
from old o
left join oldest f on f.partition = o.partition
order by o.ended_at, o.partition
