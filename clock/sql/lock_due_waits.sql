-- Due runbook waits, oldest first. One that another transaction has locked (a cancel) is returned
-- as held, and is not waited for. Index: timer_due. Row by row, as in lock_due_sustains.
with due as materialized (
    select t.ctid as row_id, t.ref, t.key, t.fire_at
    from tocsin.timer t
    where t.kind = 'runbook-wait'
      and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s)
      and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
)
select taken.locked_id::text, due.ref, due.key, due.fire_at, taken.generation, taken.payload::text, taken.generation is null
from due
left join lateral (
    select t.ctid as locked_id, t.generation, t.payload
    from tocsin.timer t
    where t.ctid = due.row_id and t.kind = 'runbook-wait' and t.ref = due.ref and t.key = due.key
      and t.parked_at is null and t.fire_at <= %(now)s
    for update of t skip locked
) taken on true
order by due.fire_at, due.ref, due.key
