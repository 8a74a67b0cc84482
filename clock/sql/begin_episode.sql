-- The pipeline is behind from now on. No row: that is known already. Locks the one row.
update tocsin.pipeline_report set since = %(since)s where since is null returning since
