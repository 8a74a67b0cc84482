-- Phase 1: the fresh series of some keys are watched with another tolerance, from their last arrival on, in key order; but
-- for those whose deadline by the former one is decided. The partitions are locked.
insert into tocsin.timer as t (kind, ref, key, fire_at, nominal_at, payload)
select 'watchdog', w.ref, w.key, greatest(w.deadline, tocsin.instant()), w.deadline,
       jsonb_build_object('owner', w.owner, 'within_us', w.within_us)
from (
    select tocsin.token(c.owner) as ref, c.owner, c.key, g.within_us, c.arrived_at, p.complete_until,
           c.arrived_at + g.within_us * interval '1 microsecond' as deadline
    from unnest(%(keys)s::text[], %(within_us)s::bigint[]) as g (key, within_us)
    join tocsin.current_value c on c.key = g.key and c.freshness = 'fresh'
    join tocsin.ingest_partition p on p.lane = 'data' and p.partition = c.partition
) as w
left join tocsin.timer armed on armed.kind = 'watchdog' and armed.ref = w.ref and armed.key = w.key
where armed.ref is null
   or w.arrived_at + (armed.payload ->> 'within_us')::bigint * interval '1 microsecond'
      > coalesce(w.complete_until, '-infinity')
order by w.ref, w.key
on conflict on constraint timer_pkey do update
    set fire_at = excluded.fire_at, nominal_at = excluded.nominal_at, payload = excluded.payload,
        attempts = 0, last_error = null, parked_at = null
