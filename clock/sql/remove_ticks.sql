-- Consume the last tick of schedules that have no further occurrence. Rows locked by lock_due_ticks.
delete from tocsin.timer t
using unnest(%(ctids)s::tid[]) as d (row_id)
where t.ctid = d.row_id
