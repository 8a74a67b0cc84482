-- Keys of events that were handed in. Nobody changes one.
delete from tocsin.ingest_event where key = any (%(key_2)s::text[]) returning key
