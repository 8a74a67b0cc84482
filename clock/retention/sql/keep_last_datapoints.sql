-- Copy the last datapoint of each series of a day that will be dropped, a chunk of series at a
-- time. Returns the last series of the chunk; no row: there are no more. Repeating it changes
-- nothing. Index: the key of current_value, datapoint_series.
with chunk as materialized (
    select owner, key from tocsin.current_value
    where (owner, key) > (%(owner)s, %(key)s)
    order by owner, key
    limit %(limit)s
),
kept as (
    insert into tocsin.datapoint_kept as k (owner, key, arrived_at, ts, value, labels)
    select d.owner, d.key, d.arrived_at, d.ts, d.value, d.labels
    from chunk c
    cross join lateral (
        select * from tocsin.datapoint candidate
        where candidate.owner = c.owner and candidate.key = c.key
          and candidate.arrived_at >= %(start)s and candidate.arrived_at < %(start)s + interval '1 day'
        order by candidate.arrived_at desc, candidate.stream_seq desc, candidate.position desc
        limit 1
    ) d
    on conflict (owner, key) do update
        set arrived_at = excluded.arrived_at, ts = excluded.ts, value = excluded.value, labels = excluded.labels
        where k.arrived_at < excluded.arrived_at
)
select owner, key from chunk order by owner desc, key desc limit 1
