-- Releases the lock of lock_run, so that another run can begin.
select tocsin.release_prune()
