-- Current values by owner and key, with the deadline or the instant since which they are stale, and
-- the reason why a deadline that has passed is not recorded. Index: the keys of current_value and
-- timer.
select c.owner, c.key, c.value, c.ts, c.labels, c.arrived_at, c.first_arrived_at, c.freshness, c.stale_since,
       case when c.freshness = 'stale' then c.stale_since
            else greatest(tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint), t.nominal_at)
            end as deadline,
       case when c.freshness = 'stale' then 'no-arrival'
            when exists (select from tocsin.held_timer h where h.kind = t.kind and h.ref = t.ref and h.key = t.key)
            then 'pipeline-behind' end as cause
from tocsin.current_value c
left join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
left join tocsin.timer t on t.kind = 'watchdog' and t.ref = tocsin.token(c.owner) and t.key = c.key
where (%(owner)s::text is null or c.owner = %(owner)s)
    and (%(key)s::text is null or c.key ~ %(key)s)
    and (%(keys)s::text[] is null or c.key = any (%(keys)s))
    and (%(freshness)s::text is null or c.freshness = %(freshness)s)
    and (%(owners)s::text[] is null or tocsin.owner_matches(c.owner, %(owners)s))
    and (%(after_owner)s::text is null or (c.owner, c.key) > (%(after_owner)s, %(after_key)s))
order by c.owner, c.key
limit %(limit)s
