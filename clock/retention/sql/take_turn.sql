-- One run of retention at a time, until the session ends or gives it back; false: somebody else is at it.
select pg_try_advisory_lock(hashtext('tocsin.prune'))
