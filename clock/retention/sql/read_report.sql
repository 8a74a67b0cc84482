-- The last run, or the running one; the current instant; and whether a run is in progress.
select r.began_at, r.ended_at, r.removed, r.left_over, tocsin.instant() as now, tocsin.is_pruning()
from tocsin.prune_report r
