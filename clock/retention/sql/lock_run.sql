-- Allow one run of retention at a time, until the session ends or unlocks; false: another session
-- holds it.
select pg_try_advisory_lock(hashtext('tocsin.prune'))
