-- The numbers of the series of some keys that arrived in a range, one row per series: big-endian
-- float8 values and microseconds since 2000, both in the order of ts, the labels of the newest, the
-- newest arrival, and how many were late. Locks nothing. Everything up to the watermarks is there.
-- Series are numbered, because integers are sorted faster than texts.
-- Index: current_value_base_key; the key of datapoint, or datapoint_series if few series are read.
with series as materialized (
    select row_number() over () as number, f.owner, f.key
    from (
        select c.owner, c.key
        from tocsin.current_value c
        where split_part(c.key, '{', 1) = any (%(keys)s::text[])
        union
        select c.owner, c.key
        from tocsin.current_value c
        where cardinality(%(patterns)s::text[]) > 0
          and split_part(c.key, '{', 1) ~ any (%(patterns)s::text[])
          and split_part(c.key, '{', 1) not like 'calc.%%'
    ) f
),
point as (
    select s.number, d.ts, d.arrived_at, d.stream_seq, d.position, d.labels,
           d.arrived_at - d.ts > %(late_after)s as is_late,
           case when jsonb_typeof(d.value) = 'number' then d.value::float8
                when d.value = 'true' then 1.0::float8 else 0.0::float8 end as value
    from series s
    join tocsin.datapoint d on d.owner = s.owner and d.key = s.key
    where d.arrived_at > %(begin)s and d.arrived_at <= %(end)s and jsonb_typeof(d.value) <> 'string'
),
packed as (
    select p.number,
           string_agg(timestamptz_send(p.ts), ''::bytea
                      order by p.ts, p.arrived_at, p.stream_seq, p.position)
               filter (where not p.is_late) as ts,
           string_agg(float8send(p.value), ''::bytea
                      order by p.ts, p.arrived_at, p.stream_seq, p.position)
               filter (where not p.is_late) as values,
           coalesce((array_agg(p.labels order by p.ts, p.arrived_at, p.stream_seq, p.position)
                         filter (where not p.is_late))[count(*) filter (where not p.is_late)], '{}') as labels,
           max(p.arrived_at) filter (where not p.is_late) as last_arrival,
           count(*) filter (where p.is_late) as late
    from point p
    group by p.number
)
select s.owner, s.key, p.ts, p.values, p.labels, p.last_arrival, p.late
from packed p
join series s using (number)
