-- The keys of events that were not caught before, in key order; a worker that brings the same key waits, and finds it
-- taken. Returns the ids of those that are new.
insert into tocsin.ingest_event (key, event_id, at)
select distinct on (d.key) d.key, d.event_id, tocsin.instant()
from unnest(%(keys)s::text[], %(event_ids)s::uuid[]) as d (key, event_id)
order by d.key
on conflict do nothing
returning event_id
