-- The last run, or the one under way, and the instant.
select began_at, ended_at, removed, left_over, tocsin.instant() as now from tocsin.prune_report
