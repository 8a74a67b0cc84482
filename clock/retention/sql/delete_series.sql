-- Delete series without datapoints for long, in key order, with their kept last datapoint. A series
-- for which a datapoint is arriving, or has arrived since, is skipped.
with gone as materialized (
    select c.owner, c.key
    from unnest(%(key_1)s::text[], %(key_2)s::text[]) as g (owner, key)
    join tocsin.current_value c on c.owner = g.owner and c.key = g.key
    where c.arrived_at < %(series_until)s
    order by c.owner, c.key
    for update of c skip locked
),
kept as (delete from tocsin.datapoint_kept k using gone g where k.owner = g.owner and k.key = g.key)
delete from tocsin.current_value c using gone g where c.owner = g.owner and c.key = g.key
returning c.owner, c.key, c.arrived_at, c.freshness
