-- Phase 1: watchdogs of keys that nothing watches any more, in key order, but for those whose deadline is decided: the
-- clock says those. One that the clock is firing is waited for, and then gone. The partitions are locked.
with victims as (
    select t.ref, t.key
    from tocsin.timer t
    join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
    join tocsin.ingest_partition p on p.lane = 'data' and p.partition = c.partition
    where t.kind = 'watchdog' and t.key = any (%(keys)s::text[])
      and c.arrived_at + (t.payload ->> 'within_us')::bigint * interval '1 microsecond'
          > coalesce(p.complete_until, '-infinity')
    order by t.ref, t.key
    for update of t
)
delete from tocsin.timer t using victims v where t.kind = 'watchdog' and t.ref = v.ref and t.key = v.key
