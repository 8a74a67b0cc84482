-- The key of the first due timer of a kind. Reads no other column and no other table, so it works
-- for a row that cannot be read. Index: timer_due. Locks nothing.
select t.ref, t.key, t.generation
from tocsin.timer t
where t.kind = %(kind)s
  and t.parked_at is null
  and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s)
  and t.fire_at <= %(now)s
order by t.fire_at, t.ref, t.key
limit 1
