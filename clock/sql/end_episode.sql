-- Record that no timers are held any more, and return since when they were. No row: it is recorded
-- already. Locks the one row.
with before as (select since from tocsin.pipeline_report where since is not null for update)
update tocsin.pipeline_report r set since = null from before
returning before.since, tocsin.instant()
