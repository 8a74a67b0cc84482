-- This worker ends: it is no longer counted, its partitions are free, and the others are notified. Partitions are found by
-- their holder and not by a list of the worker's: a take that was cancelled may have been committed.
with gone as (
    delete from tocsin.lane_worker where holder = %(holder)s
),
given as (
    update tocsin.lane_partition
    set holder = null, held_until = null
    where holder = %(holder)s
    returning lane
)
select pg_notify('tocsin_lanes', '') from given limit 1
