-- Lock due ticks in key order and read their schedules. Rows somebody else holds are skipped, never waited for.
-- Index: timer_due. A row whose schedule is at another generation belongs to an edit that is committing:
-- it comes back without its recurrence and is left alone. `policy` is empty for the defaults, which most have;
-- `done_until` is null unless the tick's occurrence is done already (I1); `identity` is null if it is not known.
with due as materialized (
    select t.ctid, t.ref, t.fire_at, t.nominal_at, t.last_nominal_at, t.generation, t.identity,
           t.identity_at
    from tocsin.timer t
    where t.kind = 'schedule-tick'
      and t.parked_at is null
      and (t.fire_at, t.ref) > (%(mark)s, %(mark_ref)s)
      and t.fire_at <= %(now)s
    order by t.fire_at, t.ref
    limit %(limit)s
    for update skip locked
)
select due.ctid::text, due.ref, due.fire_at, due.nominal_at, due.generation, s.recurrence::text,
       case
           when s.catch_up = 'latest' and s.spread = '0' and s."window" is null and s.grace is null
               and s.max_catch_up = 100
           then ''
           else concat(s.catch_up, '|', s.max_catch_up,
                       '|', (extract(epoch from s.spread) * 1000000)::bigint,
                       '|', (extract(epoch from s."window") * 1000000)::bigint,
                       '|', (extract(epoch from s.grace) * 1000000)::bigint)
       end,
       s.owner, s.name,
       case when due.nominal_at <= greatest(due.last_nominal_at, s.last_occurrence)
            then greatest(due.last_nominal_at, s.last_occurrence) end,
       case when due.identity_at = due.nominal_at then due.identity end
from due
-- Looked up row by row: told nothing about the size of the batch, the planner would read every schedule.
left join lateral (
    select *
    from tocsin.schedule one
    where one.id = due.ref::uuid and one.generation = due.generation and one.status = 'active'
    offset 0
) s on true
order by due.fire_at, due.ref
