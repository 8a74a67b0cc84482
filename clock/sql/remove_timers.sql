-- Consume timers whose rows this transaction has locked, by their places.
delete from tocsin.timer t
using unnest(%(ctids)s::tid[]) as d (row_id)
where t.ctid = d.row_id
