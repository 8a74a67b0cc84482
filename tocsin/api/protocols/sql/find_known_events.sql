-- The idempotency keys of external events that are known already. Index: primary key of ingest_event.
select e.key
from tocsin.ingest_event e
where e.key = any(%(keys)s)
