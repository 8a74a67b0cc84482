-- Inserts the keys of new external events, in key order. Another worker with the same key waits,
-- and then finds the key taken. Returns the ids of the new events.
insert into tocsin.ingest_event (key, event_id, at, digest)
select distinct on (d.key) d.key, d.event_id, tocsin.instant(), d.digest
from unnest(%(keys)s::text[], %(event_ids)s::uuid[], %(digests)s::bytea[])
    with ordinality as d (key, event_id, digest, position)
order by d.key, d.position
on conflict do nothing
returning event_id
