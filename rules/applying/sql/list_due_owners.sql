-- The owners of series whose watchdog is due, as far as it knows, by what their partition has read, or whose staleness the rules
-- have not heard of. Reads every watchdog once and locks nothing. Index: the keys of current_value, current_value_stale.
select c.partition, c.owner
from tocsin.timer t
join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
join tocsin.ingest_partition p on p.lane = 'data' and p.partition = c.partition
where t.kind = 'watchdog' and t.nominal_at <= p.complete_until
union
select c.partition, c.owner
from tocsin.current_value c
where c.freshness = 'stale' and c.heard_stale_since is distinct from c.stale_since
order by 1, 2
