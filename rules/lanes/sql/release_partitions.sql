-- Releases partitions that this worker still holds, and wakes the workers that wait for them.
with released as (
    update tocsin.lane_partition
    set holder = null, held_until = null
    where holder = %(holder)s
        and (lane, partition) in (select * from unnest(%(lanes)s::text[], %(partitions)s::integer[]))
    returning lane
)
select pg_notify('tocsin_lanes', '') from released limit 1
