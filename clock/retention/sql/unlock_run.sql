-- See lock_run.
select pg_advisory_unlock(hashtext('tocsin.prune'))
