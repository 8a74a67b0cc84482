-- The digests of the events that have these keys, by key. Locks nothing. Index: the key.
select key, digest from tocsin.ingest_event where key = any (%(keys)s::text[])
