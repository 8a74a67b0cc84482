-- A sign of life: of this worker, and of the partitions it holds, with how far those are complete. Rows that a batch of
-- its own has locked are left out: the batch renews them itself. Workers that died long ago are forgotten.
with alive as (
    insert into tocsin.lane_worker as w (holder, since, seen_until)
    values (%(holder)s, tocsin.instant(), tocsin.instant() + make_interval(secs => %(ttl_s)s))
    on conflict (holder) do update set seen_until = excluded.seen_until
),
forgotten as (
    delete from tocsin.lane_worker where seen_until < tocsin.instant() - interval '1 minute'
),
held as (
    select p.lane, p.partition
    from tocsin.lane_partition p
    where p.holder = %(holder)s
    for update skip locked
)
update tocsin.lane_partition p
set held_until = tocsin.instant() + make_interval(secs => %(ttl_s)s),
    watermark = greatest(p.watermark, c.at)
from held h
left join unnest(%(lanes)s::text[], %(partitions)s::integer[], %(complete)s::timestamptz[]) as c (lane, partition, at)
    using (lane, partition)
where p.lane = h.lane and p.partition = h.partition
