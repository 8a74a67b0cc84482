-- Due watchdogs with the newest arrival of their series, oldest first. Those that may fire or move
-- are locked together with the current value. One whose deadline lies beyond what its partition has
-- read, whose series is being written, or that another transaction has locked, is returned as held.
-- A watchdog of a series that is gone is consumed. rules/alarms/staleness.py defines the deadline.
-- Index: timer_due; the keys of current_value and lane_partition. Row by row, as in
-- lock_due_sustains.
with due as materialized (
    select t.ctid as row_id, t.ref, t.key, t.fire_at
    from tocsin.timer t
    where t.kind = 'watchdog'
      and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s)
      and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
)
select coalesce(taken.locked_id, orphan.locked_id)::text, due.ref, due.key, due.fire_at, coalesce(taken.nominal_at, orphan.nominal_at),
       coalesce(taken.generation, orphan.generation), taken.owner, coalesce(taken.freshness, 'gone'), taken.deadline,
       taken.row_id::text, taken.generation is null and orphan.generation is null
from due
left join lateral (
    select t.ctid as locked_id, t.nominal_at, t.generation, c.ctid as row_id, c.owner, c.freshness,
           tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint) as deadline
    from tocsin.timer t
    join tocsin.current_value c on c.owner = t.payload ->> 'owner' and c.key = t.key
    join tocsin.lane_partition p on p.lane = 'data' and p.partition = c.partition
    where t.ctid = due.row_id and t.kind = 'watchdog' and t.ref = due.ref and t.key = due.key
      and t.parked_at is null and t.fire_at <= %(now)s
      and (c.freshness = 'stale'
           or tocsin.series_deadline(p, c.arrived_at, (t.payload ->> 'within_us')::bigint) > t.nominal_at
           or p.watermark >= t.nominal_at)
    for update of t, c skip locked
) taken on true
left join lateral (
    select t.ctid as locked_id, t.nominal_at, t.generation
    from tocsin.timer t
    where taken.generation is null
      and t.ctid = due.row_id and t.kind = 'watchdog' and t.ref = due.ref and t.key = due.key
      and t.parked_at is null and t.fire_at <= %(now)s
      and not exists (
          select from tocsin.current_value c where c.owner = t.payload ->> 'owner' and c.key = t.key)
    for update of t skip locked
) orphan on true
order by due.fire_at, due.ref, due.key
