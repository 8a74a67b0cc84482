-- Record the progress or the result of a run.
update tocsin.prune_report
set removed = %(removed)s, left_over = %(left)s, ended_at = case when %(ended)s then tocsin.instant() end
