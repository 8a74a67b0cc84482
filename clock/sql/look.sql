-- One look at one kind: the database's time and the next timer at or after the mark.
-- Index: timer_due. Locks nothing. The bound keeps the scan off the corpses of consumed rows.
select tocsin.instant(), (
    select t.fire_at
    from tocsin.timer t
    where t.kind = %(kind)s and t.parked_at is null and t.fire_at >= %(mark)s
    order by t.fire_at
    limit 1
)
