-- A chunk of the datapoints of an owner. Index: datapoint_series.
delete from tocsin.datapoint d
using (
    select f.arrived_at, f.stream_seq, f.position
    from tocsin.datapoint f
    where f.owner = %(owner)s and f.arrived_at <= %(arrived_until)s
    order by f.owner, f.key, f.arrived_at
    limit %(limit)s
) gone
where d.arrived_at = gone.arrived_at and d.stream_seq = gone.stream_seq and d.position = gone.position
