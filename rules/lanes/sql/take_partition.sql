-- Takes a partition that is free or whose lease has ended. No row: another worker was faster. The
-- lock of a frozen holder is not waited for: Postgres ends its session. The last column is the holder
-- whose lease has ended; null if the partition was released.
with free as (
    select lane, partition, holder
    from tocsin.lane_partition
    where lane = %(lane)s and partition = %(partition)s and (holder is null or held_until <= (select tocsin.instant()))
    for update skip locked
)
update tocsin.lane_partition p
set holder = %(holder)s, held_until = tocsin.instant() + make_interval(secs => %(ttl_s)s)
from free
where p.lane = free.lane and p.partition = free.partition
returning p.last_seq, p.last_source_seq, p.watermark, p.incarnation, p.last_stored_at, p.last_gap_at, free.holder
