-- Delete keys of external events. No other transaction changes them.
delete from tocsin.ingest_event where key = any (%(key_2)s::text[]) returning key
