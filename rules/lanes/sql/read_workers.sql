-- Workers that are alive, oldest first. No lock.
select holder from tocsin.ingest_worker where seen_until > tocsin.instant() order by since, holder
