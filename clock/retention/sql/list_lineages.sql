-- A chunk of lineages that were written before the log begins, and whether their event has left it.
-- Locks nothing. Index: event_lineage_at, the unique id of each partition of event.
select l.at::text, l.event_id::text,
       not exists (select from tocsin.event e where e.id = l.event_id and e.seq >= %(horizon)s)
from (
    select * from tocsin.event_lineage
    where at < %(horizon_at)s and (at, event_id) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::uuid)
    order by at, event_id
    limit %(limit)s
) l
order by l.at, l.event_id
