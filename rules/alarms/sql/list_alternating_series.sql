-- Series whose labels return to earlier ones again and again (A, B, A): several sources share them.
-- With two different labels of each, the most frequent first. Reads the newest `datapoints` only.
-- Locks nothing. Index: the key of datapoint.
with newest as materialized (
    select d.owner, d.key, d.labels, d.arrived_at, d.stream_seq, d.position
    from tocsin.datapoint d
    where d.arrived_at >= %(since)s
    order by d.arrived_at desc, d.stream_seq desc, d.position desc
    limit %(datapoints)s
),
ordered as (
    select n.owner, n.key, n.labels,
           lag(n.labels) over series as before,
           lag(n.labels, 2) over series as two_before
    from newest n
    window series as (partition by n.owner, n.key order by n.arrived_at, n.stream_seq, n.position)
)
select o.owner, o.key, count(*) as times, min(o.labels::text)::jsonb, max(o.before::text)::jsonb
from ordered o
where o.labels is distinct from o.before and o.labels is not distinct from o.two_before and o.before is not null
group by o.owner, o.key
having count(*) >= %(least)s
order by count(*) desc, o.owner, o.key
limit %(limit)s
