-- Releases the lock of lock_run, so that another run can begin.
select pg_advisory_unlock(hashtext('tocsin.prune'))
