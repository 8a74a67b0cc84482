-- Give partitions back and wake whoever waits for them. Only those that are still ours.
with given as (
    update tocsin.lane_partition
    set holder = null, held_until = null
    where holder = %(holder)s
        and (lane, partition) in (select * from unnest(%(lanes)s::text[], %(partitions)s::integer[]))
    returning lane
)
select pg_notify('tocsin_lanes', '') from given limit 1
