-- Allow one run of retention at a time, until the session ends or unlocks; false: another session
-- holds it.
select tocsin.claim_prune()
