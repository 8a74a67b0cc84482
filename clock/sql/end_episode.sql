-- The pipeline is not behind any more; returns since when it was. No row: that is known already. Locks the one row.
with before as (select since from tocsin.pipeline_report where since is not null for update)
update tocsin.pipeline_report r set since = null from before
returning before.since, tocsin.instant()
