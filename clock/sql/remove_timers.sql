-- Delete timers that this transaction has locked, by ctid.
delete from tocsin.timer t
using unnest(%(ctids)s::tid[]) as d (row_id)
where t.ctid = d.row_id
