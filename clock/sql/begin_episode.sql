-- Record that timers are held. No row: it is recorded already. Locks the one row.
update tocsin.pipeline_report set since = %(since)s where since is null returning since
