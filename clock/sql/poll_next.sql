-- The database's time and, for each kind in the given order, the next timer after its mark. Index:
-- timer_due, once for each kind. Locks nothing. The mark keeps the scan off the dead tuples of
-- consumed rows, also within one instant.
select tocsin.instant(), array(
    select (
        select t.fire_at
        from tocsin.timer t
        where t.kind = k.kind and t.parked_at is null and (t.fire_at, t.ref, t.key) > (k.mark, k.mark_ref, k.mark_key)
        order by t.fire_at, t.ref, t.key
        limit 1
    )
    from unnest(%(kinds)s::text[], %(marks)s::timestamptz[], %(refs)s::text[], %(keys)s::text[])
        with ordinality as k (kind, mark, mark_ref, mark_key, position)
    order by k.position
)
