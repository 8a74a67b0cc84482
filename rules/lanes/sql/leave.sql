-- This worker ends: it is counted no more.
delete from tocsin.ingest_worker where holder = %(holder)s
