-- The least work for a window: the largest average per key and owner.
create temporary table bench_result on commit drop as
select owner, split_part(key, '{', 1) as key, max(average) * 2 as value
from (
    select d.owner, d.key, avg(d.value::float8) as average
    from tocsin.datapoint d
    where d.arrived_at > %(end)s::timestamptz - %(over)s::interval and d.arrived_at <= %(end)s::timestamptz
    group by d.owner, d.key
) series
group by owner, split_part(key, '{', 1)
