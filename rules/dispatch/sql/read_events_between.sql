-- The last events of a range of seqs that have one of these types (null: any type), oldest first.
-- Locks nothing. Index: event's key.
select n.seq, n.id, n.ts, n.recorded_at, n.origin, n.type, n.schedule, n.rule, n.action, n.owner, n.severity,
       n.correlation_id, n.payload
from (
    select e.*
    from tocsin.event e
    where e.seq > %(after)s and e.seq <= %(until)s and (%(types)s::text[] is null or e.type = any(%(types)s))
    order by e.seq desc
    limit %(limit)s
) as n
order by n.seq
