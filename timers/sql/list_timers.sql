-- The working set, ordered by the next fire; optionally of one kind, or only the parked ones.
-- `cause` is the reason why a due timer waits.
select kind, ref, key, fire_at, nominal_at, generation, attempts, last_error, parked_at,
       (select s.name from tocsin.schedule s where t.kind = 'schedule-tick' and s.id::text = t.ref) as schedule,
       case when exists (select from tocsin.held_timer h where h.kind = t.kind and h.ref = t.ref and h.key = t.key)
            then 'pipeline-behind' end as cause
from tocsin.timer t
where (%(kind)s::text is null or kind = %(kind)s) and (not %(parked)s or parked_at is not null)
order by fire_at, kind, ref, key
limit %(limit)s
