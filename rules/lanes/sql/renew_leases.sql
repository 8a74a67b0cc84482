-- Renews this worker and its leases, and stores the watermarks of its idle partitions and the
-- errors of canaries to partitions of the data lane. Rows that a running batch of the worker has
-- locked are skipped: the batch renews them itself. Workers that died long ago are deleted.
with renewed as (
    insert into tocsin.lane_worker (holder, since, seen_until)
    values (%(holder)s, tocsin.instant(), tocsin.instant() + make_interval(secs => %(ttl_s)s))
    on conflict (holder) do update set seen_until = excluded.seen_until
),
deleted as (
    delete from tocsin.lane_worker where seen_until < (select tocsin.instant()) - interval '1 minute'
),
held as (
    select p.lane, p.partition
    from tocsin.lane_partition p
    where p.holder = %(holder)s
    for update skip locked
)
update tocsin.lane_partition p
set held_until = tocsin.instant() + make_interval(secs => %(ttl_s)s),
    watermark = greatest(p.watermark, w.at),
    canary_error = c.error
from held h
left join unnest(%(lanes)s::text[], %(partitions)s::integer[], %(watermarks)s::timestamptz[]) as w (lane, partition, at)
    using (lane, partition)
left join unnest(%(failing)s::integer[], %(errors)s::text[]) as c (partition, error)
    on h.lane = 'data' and h.partition = c.partition
where p.lane = h.lane and p.partition = h.partition
