-- Move each tick to its next occurrence. The rows are locked by lock_due_ticks, so ctid addresses them exactly
-- (a join by id would read the whole table when it is small).
update tocsin.timer t
set fire_at = d.next_fire_at, nominal_at = d.next_at, last_nominal_at = d.done_until, attempts = 0, last_error = null
from unnest(%(ctids)s::tid[], %(next_fire_at)s::timestamptz[], %(next_at)s::timestamptz[],
            %(done_until)s::timestamptz[]) as d (row_id, next_fire_at, next_at, done_until)
where t.ctid = d.row_id
