-- Removes this worker, releases its partitions and wakes the other workers. Partitions are found by
-- their holder and not by a list of the worker: a take that was cancelled may have been committed.
with removed as (
    delete from tocsin.lane_worker where holder = %(holder)s
),
released as (
    update tocsin.lane_partition
    set holder = null, held_until = null
    where holder = %(holder)s
    returning lane
)
select pg_notify('tocsin_lanes', '') from released limit 1
