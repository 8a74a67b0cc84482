-- Phase 1: arms the watchdogs of all fresh series of these keys with a new `stale_after`, in key
-- order. A deadline is never before the watermark of the partition: what was read up to then was
-- evaluated with the old one.
insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload)
select 'watchdog', tocsin.token(c.owner), c.key, greatest(d.deadline, tocsin.instant()), d.deadline,
       jsonb_build_object('owner', c.owner, 'within_us', item.within_us)
from unnest(%(keys)s::text[], %(within_us)s::bigint[]) as item (key, within_us)
join tocsin.current_value c on c.key = item.key
join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
cross join lateral (
    select greatest(tocsin.series_deadline(p, c.arrived_at, item.within_us), p.watermark) as deadline
) d
where c.freshness = 'fresh'
order by tocsin.token(c.owner), c.key
on conflict on constraint timer_pkey do update
    set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
        attempts = 0, last_error = null, parked_at = null
