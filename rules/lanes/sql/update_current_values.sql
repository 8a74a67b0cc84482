-- Updates the current value of each series of the batch, in key order. The value with the newer
-- `ts` stays; the arrival is always the latest. Locks the rows of the series; the clock skips a
-- locked row. Returns the owners that have a new series.
with updated as (
    insert into tocsin.current_value as c
        (owner, key, partition, value, ts, labels, arrived_at, stream_seq, first_arrived_at)
    select s.owner, s.key, %(partition)s, s.value, s.ts, coalesce(s.labels, '{}'), s.last_at, s.last_seq, s.first_at
    from pg_temp.staged_datapoint s
    where s.last_seq is not null
    order by s.owner, s.key
    on conflict (owner, key) do update
    set value = case when excluded.ts >= c.ts then excluded.value else c.value end,
        labels = case when excluded.ts >= c.ts then excluded.labels else c.labels end,
        ts = greatest(c.ts, excluded.ts),
        arrived_at = excluded.arrived_at,
        stream_seq = excluded.stream_seq,
        version = c.version + 1
    returning c.owner, c.xmax = 0 as is_new
)
select distinct owner from updated where is_new
