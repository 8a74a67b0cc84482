-- Record that a run has begun.
update tocsin.prune_report set began_at = tocsin.instant(), ended_at = null, removed = '{}', left_over = '[]'
