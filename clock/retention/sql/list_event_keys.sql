-- A chunk of keys of external events that are old enough, and whether their event has left the log:
-- until then a second one could not be stored. Locks nothing. Index: ingest_event_at, the unique id
-- of each partition of event.
select i.at::text, i.key,
       not exists (select from tocsin.event e where e.id = i.event_id and e.seq >= %(horizon)s)
from (
    select * from tocsin.ingest_event
    where at < least(%(horizon_at)s::timestamptz, %(event_keys_until)s) and (at, key) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2])
    order by at, key
    limit %(limit)s
) i
order by i.at, i.key
