-- Lock due ticks in key order and read their schedules. Rows that another transaction has locked
-- are skipped, never waited for. Index: timer_due. A row whose schedule is at another generation
-- belongs to an edit that is committing: it is returned without its recurrence and is left alone.
-- `policy` is empty for the defaults, which most schedules have. `done_until` is null unless an
-- occurrence at or after the tick is done (I1). `identity` is null if it was not stored. The last
-- column is the size of a large payload, 0 for the others.
with due as materialized (
    select t.ctid, t.ref, t.fire_at, t.nominal_at, t.last_nominal_at, t.last_identity, t.generation, t.identity,
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
       case when due.nominal_at <= greatest(due.last_nominal_at, s.last_occurrence)
            then case when due.last_nominal_at >= s.last_occurrence or s.last_occurrence is null
                      then due.last_identity else s.last_identity end end,
       case when due.identity_at = due.nominal_at then due.identity end,
       case when pg_column_size(s.payload) > 2000 or pg_column_compression(s.payload) is not null
            then octet_length(s.payload::text) else 0 end
from due
-- Looked up row by row: the planner does not know the size of the batch and would read every
-- schedule.
left join lateral (
    select *
    from tocsin.schedule candidate
    where candidate.id = due.ref::uuid and candidate.generation = due.generation and candidate.status = 'active'
    offset 0
) s on true
order by due.fire_at, due.ref
