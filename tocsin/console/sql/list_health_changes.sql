-- The changes of the health of some systems since an instant, the oldest first, in the part of the log that
-- is kept. Walks the primary key of its newest records. Locks nothing.
select c.owner as system, c.ts, c.payload ->> 'health' as health
from (
    select n.owner, n.ts, n.payload, n.seq
    from tocsin.datapoint_calculated n
    where n.seq > coalesce((select max(m.seq) from tocsin.datapoint_calculated m), 0) - 200000
      and n.kind = 'health' and n.owner = any(%(systems)s) and n.ts >= %(since)s
    order by n.seq desc
    limit %(limit)s
) c
order by c.seq
